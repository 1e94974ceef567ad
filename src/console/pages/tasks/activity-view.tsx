import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Task } from "../../../http/api.ts";
import { Actor } from "../../parts/actor.tsx";
import { Status } from "../../parts/badge.tsx";
import { CopyButton } from "../../parts/code.tsx";
import { Card } from "../../parts/page.tsx";
import { useSession } from "../../state/session.tsx";
import type { ActivityItem } from "./activity.ts";
import { askedText } from "./asked.ts";
import { isFinal } from "./final.ts";
import { ToolCallView } from "./tool-call.tsx";
import { type TaskActivity, useActivity } from "./use-activity.ts";
import { useFollow } from "./use-follow.ts";
import { elementPlace, type WrittenText } from "./written-text.ts";

/** The task's model text and tool calls, live. */
export function ActivityCard({
  task,
  round,
  finished,
}: {
  readonly task: Task;
  /** Changing it starts the stream over. */
  readonly round: number;
  /** Called with the final task. */
  readonly finished: (task: Task) => void;
}): JSX.Element {
  // A finished task is shown from its start.
  const { frame, follow } = useFollow(!isFinal(task.status));
  const watched = useActivity(task.id, round, follow);
  const tell = useRef(finished);
  tell.current = finished;
  useEffect(() => {
    if (watched.finished) tell.current(watched.finished);
  }, [watched.finished]);
  // Each new piece makes the list longer.
  useLayoutEffect(follow, [watched.pieces, follow]);
  const waiting = new Set(
    watched.pieces.flatMap((piece) =>
      piece.kind === "approval" && piece.decided === null ? [piece.callId] : [],
    ),
  );
  return (
    <Card
      title={isFinal(task.status) ? "What happened" : "What happens"}
      actions={
        task.output !== null && task.output !== "" && <CopyButton text={task.output} label="Copy output" />
      }
    >
      {watched.isLost && (
        <p class="note" role="status">
          The connection was lost. The page reconnects automatically.
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1). */}
      <section class="activity" ref={frame} tabIndex={0} aria-label="What happens">
        <ol>
          {watched.pieces.map((piece) => (
            <li key={piece.key}>
              <PieceView piece={piece} task={task} waiting={waiting} />
            </li>
          ))}
        </ol>
        <Ending task={task} watched={watched} />
      </section>
    </Card>
  );
}

function PieceView({
  piece,
  task,
  waiting,
}: {
  readonly piece: ActivityItem;
  readonly task: Task;
  /** Ids of the calls that wait for a decision. */
  readonly waiting: ReadonlySet<string>;
}): JSX.Element {
  switch (piece.kind) {
    case "started":
      return (
        <p class="activity-note">
          Started with <code>{piece.model === "" ? "no model" : piece.model}</code> in tier {piece.tier}
        </p>
      );
    case "text":
      return <LiveText text={piece.text} />;
    case "reset":
      return <p class="activity-note">The answer so far was discarded, and the step is being retried.</p>;
    case "fallback":
      return (
        <p class="activity-note activity-warn">
          Fallback: <code>{piece.from}</code> failed ({piece.reason.replaceAll("_", " ")}), trying{" "}
          <code>{piece.to}</code>
        </p>
      );
    case "tool":
      return <ToolCallView call={piece} meanwhile={meanwhile(piece.id, task, waiting)} />;
    case "approval":
      return <ApprovalView piece={piece} task={task} />;
  }
}

/** The status of a call without a result. */
function meanwhile(call: string, task: Task, waiting: ReadonlySet<string>): string {
  if (isFinal(task.status)) return task.tools_called.find(({ id }) => id === call)?.status ?? "cancelled";
  return waiting.has(call) ? "awaiting_approval" : "running";
}

/** Writes to the element directly, without rendering: text may arrive at a rate of two hundred tokens a second. */
function LiveText({ text }: { readonly text: WrittenText }): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (element.current) text.show(elementPlace(element.current));
    return () => text.show(null);
  }, [text]);
  return <div class="live-text" ref={element} />;
}

function ApprovalView({
  piece,
  task,
}: {
  readonly piece: ActivityItem & { readonly kind: "approval" };
  readonly task: Task;
}): JSX.Element {
  const { can } = useSession();
  const { decided, tool, callId } = piece;
  if (decided) {
    return (
      <p class="activity-note">
        <Status status={decided.decision === "approve" ? "approved" : "denied"} /> <code>{tool}</code> by{" "}
        <Actor of={decided.actor} />
      </p>
    );
  }
  return (
    <p class="activity-note activity-warn">
      {isFinal(task.status) ? "Approval was requested for" : "Waiting for approval of"} <code>{tool}</code>
      {can("approvals:write") && (
        <>
          {" · "}
          <a href={`/console/approvals/${task.id}/${callId}`}>Open the approval</a>
        </>
      )}
    </p>
  );
}

/** The state at the end of the activity, which distinguishes an empty output from one that is still to come. */
function Ending({
  task,
  watched,
}: {
  readonly task: Task;
  readonly watched: TaskActivity;
}): JSX.Element | null {
  if (task.status === "queued") return <p class="activity-note">Waiting in the queue for its turn.</p>;
  if (!isFinal(task.status)) {
    return task.status === "running" ? <p class="activity-note activity-running">Running …</p> : null;
  }
  if (askedText(task) === null) return <p class="activity-note">The content of this task was erased.</p>;
  const hasText = watched.pieces.some(({ kind }) => kind === "text");
  if (task.status === "succeeded") {
    return task.output === "" ? <p class="activity-note">The output is empty.</p> : null;
  }
  return (
    <p class="activity-note">
      The task {task.status === "failed" ? "failed" : "was cancelled"} here.
      {hasText && " The text above is not its output, only what the model had written so far."}
    </p>
  );
}
