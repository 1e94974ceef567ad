import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "../../parts/dialog.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { Unsaved } from "../../parts/unsaved.tsx";
import { useSession } from "../../state/session.tsx";
import { useData } from "../../state/use-data.ts";
import { draftOf, EMPTY_DRAFT } from "./dispatch.ts";
import { TaskForm } from "./task-form.tsx";
import type { AgentList } from "./use-agents.ts";

/** The form for a new task, above the list: empty, or copied from an earlier task. */
export function NewTask({
  known,
  agent,
  from,
  close,
  dispatched,
}: {
  readonly known: AgentList;
  /** The agent chosen initially; empty: none. */
  readonly agent: string;
  /** Id of the task to repeat. */
  readonly from: string | null;
  readonly close: () => void;
  readonly dispatched: (id: string) => void;
}): JSX.Element {
  const { session } = useSession();
  const [isDirty, setDirty] = useState(false);
  const earlier = useData("GET /v1/tasks/:id", from === null ? null : { params: { id: from } });
  const isReady = known.agents !== undefined && (from === null || earlier.data !== undefined);
  const only = known.agents?.length === 1 ? (known.agents[0]?.name ?? "") : "";
  // The address may name an agent that does not exist.
  const isThere = known.agents === null || known.agents?.some(({ name }) => name === agent) === true;
  const first = session.agent ?? (isThere && agent !== "" ? agent : only);
  return (
    <Dialog title={from === null ? "New task" : "Run again"} close={close} isWide isDirty={isDirty}>
      <Unsaved isDirty={isDirty} />
      <ProblemNote problem={known.problem ?? earlier.problem} retry={earlier.reload} />
      {isReady ? (
        <TaskForm
          key={from ?? ""}
          agents={known.agents ?? null}
          start={earlier.data ? draftOf(earlier.data) : { ...EMPTY_DRAFT, agent: first }}
          tellDirty={setDirty}
          dispatched={dispatched}
        />
      ) : (
        <Loading />
      )}
    </Dialog>
  );
}
