import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "../../parts/dialog.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { Unsaved } from "../../parts/unsaved.tsx";
import { useSession } from "../../state/session.tsx";
import { useData } from "../../state/use-data.ts";
import { draftAfter, draftOf, EMPTY_DRAFT } from "./dispatch.ts";
import { TaskForm } from "./task-form.tsx";
import type { AgentList } from "./use-agents.ts";

/** The form for a new task, above the list: empty, copied from an earlier task, or continuing one. */
export function NewTask({
  known,
  agent,
  from,
  continues,
  close,
  dispatched,
}: {
  readonly known: AgentList;
  /** The agent chosen initially; empty: none. */
  readonly agent: string;
  /** Id of the task to repeat. */
  readonly from: string | null;
  /** Id of the task whose conversation is continued. */
  readonly continues: string | null;
  readonly close: () => void;
  readonly dispatched: (id: string) => void;
}): JSX.Element {
  const { session } = useSession();
  const [isDirty, setDirty] = useState(false);
  const source = from ?? continues;
  const earlier = useData("GET /v1/tasks/:id", source === null ? null : { params: { id: source } });
  const isReady = known.agents !== undefined && (source === null || earlier.data !== undefined);
  const only = known.agents?.length === 1 ? (known.agents[0]?.name ?? "") : "";
  // The address may name an agent that does not exist.
  const isThere = known.agents === null || known.agents?.some(({ name }) => name === agent) === true;
  const first = session.agent ?? (isThere && agent !== "" ? agent : only);
  return (
    <Dialog title={titleOf(from, continues)} close={close} isWide isDirty={isDirty}>
      <Unsaved isDirty={isDirty} />
      <ProblemNote problem={known.problem ?? earlier.problem} retry={earlier.reload} />
      {isReady ? (
        <TaskForm
          key={source ?? ""}
          agents={known.agents ?? null}
          start={
            earlier.data
              ? (from === null ? draftAfter : draftOf)(earlier.data)
              : { ...EMPTY_DRAFT, agent: first }
          }
          tellDirty={setDirty}
          dispatched={dispatched}
        />
      ) : (
        <Loading />
      )}
    </Dialog>
  );
}

function titleOf(from: string | null, continues: string | null): string {
  if (from !== null) return "Run again";
  return continues === null ? "New task" : "Continue";
}
