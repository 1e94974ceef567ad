import type { JSX } from "preact";
import type { Approval, Task } from "../../../http/api.ts";
import { Actor } from "../../parts/actor.tsx";
import { Badge, Status } from "../../parts/badge.tsx";
import { Card } from "../../parts/page.tsx";
import { ProblemNote } from "../../parts/problem.tsx";
import { shortId } from "../../parts/text.tsx";
import { useSession } from "../../state/session.tsx";
import type { Loaded } from "../../state/use-data.ts";
import { TaskMessages } from "../tasks/asked-card.tsx";
import { ExactJson, ExactText } from "./exact.tsx";
import type { HistoryStep, StoryCall } from "./story.ts";
import type { ReadStory } from "./use-story.ts";

/** What led to the call: the task's prompt, and everything that the task wrote and did before it asked. */
export function ContextCard({
  approval,
  task,
  read: { story, isRefused },
}: {
  readonly approval: Approval;
  readonly task: Loaded<Task>;
  readonly read: ReadStory;
}): JSX.Element {
  const { can } = useSession();
  if (!can("tasks:read")) {
    return (
      <Card title="What led here">
        <p class="muted">
          Your token lacks the scope <code>tasks:read</code>, so the task's prompt and steps are not shown.
          Ask the person who issued it before you decide on something you cannot judge.
        </p>
      </Card>
    );
  }
  const { data, problem, reload } = task;
  return (
    <Card
      title="What led here"
      actions={
        <a href={`/console/tasks/${encodeURIComponent(approval.task)}`} title={approval.task}>
          Task {shortId(approval.task)}
        </a>
      }
    >
      <ProblemNote problem={problem} retry={reload} />
      {data && (
        <>
          <div class="row small muted">
            <Status status={data.status} />
            <span>Tier {data.tier}</span>
            {data.model !== null && <span class="break">{data.model}</span>}
            <span class="break">
              dispatched by <Actor of={data.created_by} />
            </span>
          </div>
          <h3>{data.messages ? "Messages" : "Prompt"}</h3>
          {data.messages && <TaskMessages messages={data.messages} />}
          {data.prompt !== null && <ExactText text={data.prompt} label="Prompt of the task" />}
          {data.prompt === null && !data.messages && <p class="muted">The prompt was erased.</p>}
        </>
      )}
      <h3>Steps before the request</h3>
      {isRefused && <p class="muted">The task's events could not be read.</p>}
      {story.steps.length === 0 && !isRefused && (
        <p class="muted">{story.isWhole ? "Nothing was recorded before the call." : "Reading …"}</p>
      )}
      <ol class="story">
        {story.steps.map((step, index) => (
          <StepItem key={index} step={step} number={index + 1} asking={approval.call_id} />
        ))}
      </ol>
    </Card>
  );
}

function StepItem({
  step,
  number,
  asking,
}: {
  readonly step: HistoryStep;
  readonly number: number;
  /** Id of the call that needs approval. */
  readonly asking: string;
}): JSX.Element {
  return (
    <li class="stack-small">
      {step.text !== "" && <ExactText text={step.text} label={`What the model said in step ${number}`} />}
      {step.calls.map((call) => (
        <CallLine key={call.id} call={call} isAsking={call.id === asking} />
      ))}
    </li>
  );
}

function CallLine({ call, isAsking }: { readonly call: StoryCall; readonly isAsking: boolean }): JSX.Element {
  const head = (
    <>
      <span class="muted">called</span> <code class="break">{call.tool}</code>{" "}
      {isAsking ? <Badge tone="warn" text="this call" /> : call.status && <Status status={call.status} />}
    </>
  );
  if (isAsking) return <p>{head}</p>;
  return (
    <details>
      <summary>{head}</summary>
      <ExactJson value={call.arguments} label={`Arguments of the earlier call of ${call.tool}`} isShort />
    </details>
  );
}
