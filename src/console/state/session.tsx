import { type ComponentChildren, createContext } from "preact";
import { useCallback, useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { CurrentSession as Who } from "../../http/api.ts";
import { call, onSignedOut } from "../api/client.ts";
import { type ApiProblem, asProblem } from "../api/problem.ts";
import { Feed, type FeedState } from "./feed.ts";

/** The signed-in user, as pages need it. */
export interface SessionContext {
  readonly session: Who;
  readonly feed: Feed;
  /** Whether the session's token has a scope. */
  can(scope: string): boolean;
  signOut(): Promise<void>;
}

/**
 * `asking`: not known yet. `out`: not signed in. `failed`: the server could not be reached. `isLapsed`: the session
 * has ended, and what was typed is kept until the user signs in again.
 */
export type SessionState =
  | { readonly kind: "asking" | "out" }
  | { readonly kind: "failed"; readonly problem: ApiProblem }
  | { readonly kind: "in"; readonly signedIn: SessionContext; readonly isLapsed: boolean };

const EXPECTED = "gatehouse-signed-in";

/**
 * When the session may end, in milliseconds since the Unix epoch. Signed-out users see the sign-in page at once,
 * without a request that would be refused. The cookie, which scripts cannot read, decides.
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
    // Without storage, the server is asked each time.
  }
}

const Context = createContext<SessionContext | null>(null);

/** @throws Error if nobody is signed in */
export function useSession(): SessionContext {
  const signedIn = useContext(Context);
  if (!signedIn) throw new Error("nobody is signed in");
  return signedIn;
}

export function SessionProvider({
  signedIn,
  children,
}: {
  readonly signedIn: SessionContext;
  readonly children: ComponentChildren;
}) {
  return <Context.Provider value={signedIn}>{children}</Context.Provider>;
}

/** Whether two answers describe the same token. What one user has typed must not be shown to another. */
function isSame(one: Who, other: Who): boolean {
  return one.actor === other.actor && one.workspace === other.workspace;
}

/** Reads the session and keeps it up to date. Any 401 answer ends it. */
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
        // Another user: discard everything on the page.
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

  // One feed for each user, since its events belong to one workspace.
  const actor = session && `${session.workspace} ${session.actor}`;
  const feed = useMemo(() => (actor === null ? null : new Feed(() => void ask())), [ask, actor]);
  current.current.feed = feed;
  const isIn = kind === "in";
  useEffect(() => {
    if (!isIn || !feed) return undefined;
    feed.start();
    let isOver = false;
    // Something may have happened between the answer and the stream's opening.
    void feed.ready.then(() => {
      if (!isOver) void ask();
    });
    const ends = [
      // The missed event may be that the workspace was stopped.
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

  const signedIn = useMemo<SessionContext | null>(
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

/** The state of the event stream. */
export function useFeedState(): FeedState {
  const { feed } = useSession();
  const [state, setState] = useState(feed.state);
  useEffect(() => {
    setState(feed.state);
    return feed.onState(() => setState(feed.state));
  }, [feed]);
  return state;
}
