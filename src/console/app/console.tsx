import type { JSX } from "preact";
import { LocationProvider } from "preact-iso";
import { ProblemNote } from "../parts/problem.tsx";
import { Toasts } from "../parts/toast.tsx";
import { SessionProvider, useSessionState } from "../state/session.tsx";
import { Shell } from "./shell.tsx";
import { SignIn } from "./sign-in.tsx";

/** All of it: the page for signing in, or the pages for who is signed in. The address stays the same meanwhile. */
export function Console(): JSX.Element {
  const { state, ask } = useSessionState();
  return (
    <LocationProvider scope="/console">
      {state.kind === "in" && (
        <SessionProvider signedIn={state.signedIn}>
          <Shell />
        </SessionProvider>
      )}
      {state.kind === "out" && <SignIn signedIn={ask} />}
      {state.kind === "failed" && (
        <div class="sign-in">
          <main>
            <ProblemNote problem={state.problem} retry={() => void ask()} />
          </main>
        </div>
      )}
      <Toasts />
    </LocationProvider>
  );
}
