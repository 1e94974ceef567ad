import { type ComponentChildren, createContext } from "preact";
import { useCallback, useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
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

/**
 * `asking`: not known yet. `out`: nobody is signed in. `failed`: the server could not be asked. `isLapsed`: somebody was, and what
 * they have typed is kept until they are so again.
 */
export type SessionState =
  | { readonly kind: "asking" | "out" }
  | { readonly kind: "failed"; readonly problem: ApiProblem }
  | { readonly kind: "in"; readonly signedIn: SignedIn; readonly isLapsed: boolean };

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

/** Whether two answers are of the same token: what was drawn and typed for the one is not for another. */
function isSame(one: Who, other: Who): boolean {
  return one.actor === other.actor && one.workspace === other.workspace;
}

/** Asks who is signed in, and keeps to it: an answer of 401 anywhere ends the session here. */
export function useSessionState(): {
  readonly state: SessionState;
  readonly ask: () => Promise<void>;
} {
  const [session, setSession] = useState<Who | null>(null);
  const [kind, setKind] = useState<"asking" | "out" | "lapsed" | "in">("asking");
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const current = useRef<{ who: Who | null; feed: Feed | null }>({ who: null, feed: null });

  const leave = useCallback(() => {
    expectUntil(null);
    current.current.who = null;
    setSession(null);
    setKind("out");
  }, []);
  const lapse = useCallback(() => {
    expectUntil(null);
    setKind(current.current.who ? "lapsed" : "out");
  }, []);

  const ask = useCallback(async () => {
    const { who, feed } = current.current;
    const told = feed?.last("workspace.changed");
    try {
      const answer = await call("GET /v1/session", {});
      if (who && !isSame(who, answer)) {
        // Somebody else: nothing that was drawn for the one before may stay.
        location.reload();
        return;
      }
      const since = feed?.last("workspace.changed");
      const asked = since && since !== told ? { ...answer, workspace_status: since.status } : answer;
      expectUntil(asked.session?.expires_at ?? null);
      current.current.who = asked;
      setSession(asked);
      setKind("in");
      setProblem(null);
    } catch (error) {
      const failed = asProblem(error);
      if (failed.status === 401) lapse();
      else setProblem(failed);
    }
  }, [lapse]);

  useEffect(() => {
    if (expectedUntil() > Date.now()) void ask();
    else leave();
  }, [ask, leave]);
  useEffect(() => onSignedOut(lapse), [lapse]);

  // One for each who is signed in: what it has heard is of their workspace.
  const actor = session && `${session.workspace} ${session.actor}`;
  const feed = useMemo(() => (actor === null ? null : new Feed(() => void ask())), [ask, actor]);
  current.current.feed = feed;
  const isIn = kind === "in";
  useEffect(() => {
    if (!isIn || !feed) return undefined;
    feed.start();
    let isOver = false;
    // Between the answer and the stream's beginning something may have happened that neither has told.
    void feed.ready.then(() => {
      if (!isOver) void ask();
    });
    const ends = [
      // What was missed may be that everything was stopped.
      feed.onGap(() => void ask()),
      feed.listen("workspace.changed", ({ status }) =>
        setSession((before) =>
          before === null || before.workspace_status === status
            ? before
            : { ...before, workspace_status: status },
        ),
      ),
    ];
    return () => {
      isOver = true;
      for (const end of ends) end();
      feed.stop();
    };
  }, [feed, isIn, ask]);

  const signedIn = useMemo<SignedIn | null>(
    () =>
      session &&
      feed && {
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

  if ((kind === "in" || kind === "lapsed") && signedIn) {
    return { state: { kind: "in", signedIn, isLapsed: kind === "lapsed" }, ask };
  }
  if (kind === "asking" && problem) return { state: { kind: "failed", problem }, ask };
  return { state: { kind: kind === "out" ? "out" : "asking" }, ask };
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
