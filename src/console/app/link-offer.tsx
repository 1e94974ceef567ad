import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { Dialog } from "../parts/dialog.tsx";
import { ProblemNote } from "../parts/problem.tsx";
import { useSession } from "../state/session.tsx";
import { useAction } from "../state/use-action.ts";
import { hasLink, onLink, spendLink } from "./link.ts";

/** A signed-in user has opened a sign-in link: asks whether to switch to the link's user. */
export function LinkOffer(): JSX.Element | null {
  const { session } = useSession();
  const [isOpen, setOpen] = useState(hasLink);
  const action = useAction();
  useEffect(() => onLink(() => setOpen(hasLink())), []);
  if (!isOpen) return null;

  function keep(): void {
    spendLink();
    setOpen(false);
  }
  async function change(): Promise<void> {
    const secret = spendLink();
    await action.run(async () => {
      await call("POST /v1/session", { headers: { authorization: `Bearer ${secret}` } });
      location.reload();
    });
  }

  return (
    <Dialog title="Sign in with the link?" close={keep}>
      <p>
        You are signed in as {session.person ?? session.token?.name} in {session.workspace}. The link may
        belong to somebody else; you would then act in their name.
      </p>
      <ProblemNote problem={action.problem} />
      <div class="dialog-end">
        <button type="button" onClick={keep}>
          Stay as I am
        </button>
        <button type="button" class="button-main" disabled={action.isBusy} onClick={() => void change()}>
          Sign in with the link
        </button>
      </div>
    </Dialog>
  );
}
