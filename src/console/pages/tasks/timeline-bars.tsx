import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Task } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { creditsText, durationText, Time } from "../../parts/text.tsx";
import { isFinal } from "./final.ts";
import type { TimelineSpan } from "./spans.ts";

const TICK_MS = 1_000;
const TICKS = [0, 0.25, 0.5, 0.75, 1];
const KINDS: Readonly<Record<TimelineSpan["kind"], string>> = {
  queue: "Queue",
  model: "Model",
  tool: "Tool",
  person: "Person",
  mark: "Decision",
};

/** Spans as bars on a common axis that begins when the task was created. */
export function TimelineBars({
  task,
  spans,
}: {
  readonly task: Task;
  readonly spans: readonly TimelineSpan[];
}): JSX.Element {
  const now = useNow(!isFinal(task.status));
  const start = Date.parse(task.created_at);
  const end = task.finished_at === null ? now : Date.parse(task.finished_at);
  const length = Math.max(1, end - start);
  return (
    <div class="timeline">
      <div class="timeline-axis" aria-hidden="true">
        {TICKS.map((part) => (
          <span key={part}>{part === 0 ? "0" : axisText(length * part, length)}</span>
        ))}
      </div>
      <ol>
        {spans.map((span) => (
          <li key={span.key} class="timeline-span">
            <span class="timeline-name break">
              <span class="muted small">{KINDS[span.kind]}</span> {span.name}
            </span>
            <SpanFacts span={span} start={start} />
            <Bar span={span} start={start} length={length} now={now} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function Bar({
  span,
  start,
  length,
  now,
}: {
  readonly span: TimelineSpan;
  readonly start: number;
  readonly length: number;
  readonly now: number;
}): JSX.Element {
  const from = part(span.from - start, length);
  const to = part((span.to ?? now) - start, length);
  const isBad = span.outcome !== null && /^(failed|denied|unknown|cancelled)/.test(span.outcome);
  return (
    <span class="timeline-track" aria-hidden="true">
      <span
        class="timeline-bar"
        data-kind={span.kind}
        data-bad={isBad}
        style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }}
      />
    </span>
  );
}

function SpanFacts({ span, start }: { readonly span: TimelineSpan; readonly start: number }): JSX.Element {
  const [word = "", code] = (span.outcome ?? "").split(": ");
  const offset = Math.max(0, span.from - start);
  return (
    <span class="timeline-facts small">
      {span.outcome !== null && <Status status={word} />}
      {code !== undefined && <span class="timeline-code">{code.replaceAll("_", " ")}</span>}
      {span.kind === "mark" ? (
        <Time at={new Date(span.from).toISOString()} />
      ) : (
        <span class="number">
          <span class="muted">at {durationText(offset)} for </span>
          {span.to === null ? "…" : durationText(span.to - span.from)}
        </span>
      )}
      {span.credits !== null && <span class="number">{creditsText(span.credits)} credits</span>}
      {span.seq !== null && <a href={`/console/ledger/${span.seq}`}>Entry {span.seq}</a>}
    </span>
  );
}

/** A position between 0 and 1. Actions after the task's end are drawn at its end. */
function part(ms: number, length: number): number {
  return Math.min(1, Math.max(0, ms / length));
}

/** An axis label. Both arguments are milliseconds; all labels of an axis use the unit that suits its length. */
function axisText(ms: number, length: number): string {
  if (length < 1_000) return `${Math.round(ms)} ms`;
  if (length < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const isLong = length >= 3_600_000;
  const small = Math.round(ms / (isLong ? 60_000 : 1_000));
  return `${Math.floor(small / 60)}:${String(small % 60).padStart(2, "0")} ${isLong ? "h" : "min"}`;
}

function useNow(isRunning: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = setInterval(() => setNow(Date.now()), TICK_MS);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now;
}
