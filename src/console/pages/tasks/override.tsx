import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Task } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { CloseButton, Dialog } from "../../parts/dialog.tsx";
import { Select, TextArea } from "../../parts/field.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import { notify } from "../../parts/toast.tsx";
import { Unsaved } from "../../parts/unsaved.tsx";
import { useAction } from "../../state/use-action.ts";

type OverrideDecision = "override" | "disregard";

/** Records that a task's output does not count, or what counts instead. */
export function OverrideDialog({
  task,
  close,
  done,
}: {
  readonly task: Task;
  readonly close: () => void;
  readonly done: () => void;
}): JSX.Element {
  const [decision, setDecision] = useState<OverrideDecision>("disregard");
  const [reason, setReason] = useState("");
  const [output, setOutput] = useState(task.output ?? "");
  const action = useAction();
  const isDirty = reason !== "" || output !== (task.output ?? "");
  const fields = action.problem?.fields;

  async function decide(): Promise<void> {
    const answer = await action.run(() =>
      call("POST /v1/tasks/:id/override", {
        params: { id: task.id },
        body: { decision, reason, ...(decision === "override" ? { output } : {}) },
      }),
    );
    if (!answer) return;
    notify(decision === "override" ? "The output has been overridden." : "The output has been disregarded.");
    done();
    close();
  }

  return (
    <Dialog title="Override the output" close={close} isWide isDirty={isDirty}>
      <Unsaved isDirty={isDirty} />
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void decide();
        }}
      >
        <p class="muted">
          The task does not change. Your decision is recorded in the ledger, with your name and reason.
        </p>
        <Select
          label="Decision"
          value={decision}
          options={[
            ["disregard", "Disregard: the output does not count"],
            ["override", "Override: something else counts instead"],
          ]}
          change={(value) => setDecision(value === "override" ? "override" : "disregard")}
        />
        {decision === "override" && (
          <TextArea
            label="What counts instead"
            rows={6}
            value={output}
            change={setOutput}
            error={fields?.get("/output")}
          />
        )}
        <TextArea
          label="Reason"
          rows={3}
          required
          value={reason}
          change={setReason}
          error={fields?.get("/reason")}
        />
        <ProblemNote problem={action.problem} />
        <div class="dialog-end">
          <CloseButton>Cancel</CloseButton>
          <button type="submit" class="button-main" disabled={action.isBusy || reason.trim() === ""}>
            {decision === "override" ? "Override the output" : "Disregard the output"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
