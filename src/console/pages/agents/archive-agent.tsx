import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import { Dialog } from "../../parts/dialog.tsx";
import { TextField } from "../../parts/field.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import type { Action } from "../../state/use-action.ts";

/** Asks for the agent's name, because archiving cannot be undone. */
export function ArchiveAgent({
  name,
  action,
  close,
  done,
}: {
  readonly name: string;
  readonly action: Action;
  readonly close: () => void;
  readonly done: () => void;
}): JSX.Element {
  const [typed, setTyped] = useState("");

  async function archive(): Promise<void> {
    const isDone = await action.run(async () => {
      await call("DELETE /v1/agents/:name", { params: { name } });
      return true;
    });
    if (isDone) done();
  }

  return (
    <Dialog title={`Archive ${name}?`} close={close}>
      <p>
        Its tasks end, tokens that act as it stop working, and it disappears from lists. Its tasks and ledger
        entries stay. Archiving cannot be undone; the name becomes available again.
      </p>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (typed.trim() === name) void archive();
        }}
      >
        <TextField label={`Type ${name} to archive it`} value={typed} change={setTyped} />
        <ProblemNote problem={action.problem} />
        <div class="dialog-end">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="button-bad" disabled={action.isBusy || typed.trim() !== name}>
            Archive the agent
          </button>
        </div>
      </form>
    </Dialog>
  );
}
