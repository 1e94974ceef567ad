import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { LocationProvider } from "preact-iso";
import { ProblemNote } from "../parts/problem.tsx";
import { Toasts } from "../parts/toast.tsx";
import { SessionProvider, useSessionState } from "../state/session.tsx";
import { LinkOffer } from "./link-offer.tsx";
import { Shell } from "./shell.tsx";
import { SignIn } from "./sign-in.tsx";
import { StopAnyway } from "./stop-anyway.tsx";

/** The whole console: the sign-in page, or the pages for the signed-in user. Signing in keeps the address. */
export function Console(): JSX.Element {
  const { state, ask } = useSessionState();
  return (
    <LocationProvider scope="/console">
      {state.kind === "in" && (
        <SessionProvider signedIn={state.signedIn}>
          <Shell />
          {state.isLapsed ? <Lapsed signedIn={ask} /> : <LinkOffer />}
        </SessionProvider>
      )}
      {state.kind === "out" && <SignIn signedIn={ask} />}
      {state.kind === "failed" && (
        <div class="sign-in">
          <main class="stack">
            <ProblemNote problem={state.problem} retry={() => void ask()} />
            <StopAnyway />
          </main>
        </div>
      )}
      <Toasts />
    </LocationProvider>
  );
}

/** Covers and hides the page until the same person signs in again. */
function Lapsed({ signedIn }: { readonly signedIn: () => Promise<void> }): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    element.current?.showModal();
  }, []);
  return (
    <dialog
      ref={element}
      class="dialog-whole"
      aria-label="Sign in again"
      onCancel={(event) => event.preventDefault()}
      // A browser closes a dialog on the second Escape, even if the first was cancelled.
      onClose={() => element.current?.showModal()}
    >
      <SignIn signedIn={signedIn} isAgain />
    </dialog>
  );
}
