import { type ComponentChildren, createContext } from "preact";
import { useCallback, useContext, useEffect, useMemo, useState } from "preact/hooks";
import type { SignedIn as Who } from "../../http/api.ts";
import { call, onSignedOut } from "../api/client.ts";
import { type ApiProblem, asProblem } from "../api/problem.ts";
import { Feed, type FeedState } from "./feed.ts";

/** Who is signed in, and what a page needs of that. */
export interface SignedIn {
  readonly session: Who;
  readonly feed: Feed;
  /** Whether the token behind the session has a scope. */
  can(scope: string): boolean;
  signOut(): Promise<void>;
}

/** `asking`: not known yet. `out`: nobody is signed in. `failed`: the server could not be asked. */
export type SessionState =
  | { readonly kind: "asking" | "out" }
  | { readonly kind: "failed"; readonly problem: ApiProblem }
  | { readonly kind: "in"; readonly signedIn: SignedIn };

const EXPECTED = "gatehouse-signed-in";

/**
 * Until when somebody may be signed in here, in milliseconds since the Unix epoch: so that whoever is not is shown where to
 * sign in at once, and the server is not asked what it would refuse. The cookie, which no script reads, decides.
 */
function expectedUntil(): number {
  try {
    return Number(localStorage.getItem(EXPECTED) ?? 0);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

function expectUntil(time: string | null): void {
  try {
    if (time === null) localStorage.removeItem(EXPECTED);
    else localStorage.setItem(EXPECTED, String(Date.parse(time)));
  } catch {
    // The server is asked each time.
  }
}

const Context = createContext<SignedIn | null>(null);

/** @throws Error outside of a page that somebody is signed in to */
export function useSession(): SignedIn {
  const signedIn = useContext(Context);
  if (!signedIn) throw new Error("nobody is signed in");
  return signedIn;
}

export function SessionProvider({
  signedIn,
  children,
}: {
  readonly signedIn: SignedIn;
  readonly children: ComponentChildren;
}) {
  return <Context.Provider value={signedIn}>{children}</Context.Provider>;
}

/** Asks who is signed in, and keeps to it: an answer of 401 anywhere signs out here. */
export function useSessionState(): {
  readonly state: SessionState;
  readonly ask: () => Promise<void>;
} {
  const [session, setSession] = useState<Who | null>(null);
  const [kind, setKind] = useState<"asking" | "out" | "in">("asking");
  const [problem, setProblem] = useState<ApiProblem | null>(null);

  const leave = useCallback(() => {
    expectUntil(null);
    setKind("out");
  }, []);

  const ask = useCallback(async () => {
    try {
      const asked = await call("GET /v1/session", {});
      expectUntil(asked.session?.expires_at ?? null);
      setSession(asked);
      setKind("in");
      setProblem(null);
    } catch (error) {
      const failed = asProblem(error);
      if (failed.status === 401) leave();
      else setProblem(failed);
    }
  }, [leave]);

  useEffect(() => {
    if (expectedUntil() > Date.now()) void ask();
    else leave();
  }, [ask, leave]);
  useEffect(() => onSignedOut(leave), [leave]);

  const feed = useMemo(() => new Feed(() => void ask()), [ask]);
  const isIn = kind === "in";
  useEffect(() => {
    if (!isIn) return undefined;
    feed.start();
    return () => feed.stop();
  }, [feed, isIn]);

  const signedIn = useMemo<SignedIn | null>(
    () =>
      session && {
        session,
        feed,
        can: (scope) => session.scopes.includes("admin") || session.scopes.includes(scope),
        async signOut() {
          await call("DELETE /v1/session", {});
          leave();
        },
      },
    [session, feed, leave],
  );

  if (kind === "in" && signedIn) return { state: { kind, signedIn }, ask };
  if (kind === "asking" && problem) return { state: { kind: "failed", problem }, ask };
  return { state: { kind: kind === "in" ? "asking" : kind }, ask };
}

/** How the page hears of changes at present. */
export function useFeedState(): FeedState {
  const { feed } = useSession();
  const [state, setState] = useState(feed.state);
  useEffect(() => {
    setState(feed.state);
    return feed.onState(() => setState(feed.state));
  }, [feed]);
  return state;
}
