import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { LedgerEntry, Task } from "../../../http/api.ts";
import { addressOf, call } from "../../api/client.ts";
import { Card } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { usePages } from "../../state/use-pages.ts";
import { isFinal } from "./final.ts";
import { queueSpan, spansOf, spansOfTools } from "./spans.ts";
import { TimelineBars } from "./timeline-bars.tsx";

const PAGE = 200;
/** The maximum number of entries read, including entries of people who read the task. */
const MOST = 2_000;
/** The shortest time between two reads: each read is a ledger entry itself. */
const SHORTEST_MS = 3_000;

/** A task's steps on a time axis, from their ledger entries. */
export function LedgerTimeline({
  task,
  round,
}: {
  readonly task: Task;
  readonly round: number;
}): JSX.Element {
  const pages = usePages<LedgerEntry>(task.id, (cursor, signal) =>
    call("GET /v1/ledger", {
      query: { task: task.id, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) },
      signal,
    }),
  );
  const { items, isLoading, isWhole, problem, more, reload } = pages;
  useEffect(() => {
    if (!isLoading && !isWhole && !problem && items.length < MOST) more();
  }, [isLoading, isWhole, problem, items.length, more]);

  const mark = `${round} ${task.status} ${task.usage.steps} ${task.credits_consumed}`;
  const shown = useRef({ mark, at: Date.now() });
  useEffect(() => {
    if (shown.current.mark === mark) return undefined;
    const wait = isFinal(task.status) ? 0 : Math.max(0, shown.current.at + SHORTEST_MS - Date.now());
    const later = setTimeout(() => {
      shown.current = { mark, at: Date.now() };
      reload();
    }, wait);
    return () => clearTimeout(later);
  }, [mark, task.status, reload]);

  return (
    <Card
      title="Timeline"
      actions={<a href={addressOf("/console/ledger", {}, { task: task.id })}>All entries in the ledger</a>}
    >
      <ProblemNote problem={problem} retry={reload} />
      {items.length === 0 && isLoading ? (
        <Loading />
      ) : (
        <TimelineBars task={task} spans={[queueSpan(task), ...spansOf(task, items)]} />
      )}
      {!isWhole && !isLoading && items.length >= MOST && (
        <p class="muted small">These are the first {MOST} entries. See the ledger for the rest.</p>
      )}
    </Card>
  );
}

export function ToolTimeline({ task }: { readonly task: Task }): JSX.Element {
  return (
    <Card title="Timeline">
      <p class="muted small">
        Finished tool calls. To see model calls and costs here too, you need the scope ledger:read.
      </p>
      <TimelineBars task={task} spans={[queueSpan(task), ...spansOfTools(task)]} />
    </Card>
  );
}
