import type { LedgerEntry, Task } from "../../../http/api.ts";

/** An activity or waiting period on the time axis. Times are milliseconds since the Unix epoch. */
export interface TimelineSpan {
  readonly key: string;
  readonly kind: "queue" | "model" | "tool" | "person" | "mark";
  readonly name: string;
  readonly from: number;
  /** Null while in progress. */
  readonly to: number | null;
  /** Null while unknown. */
  readonly outcome: string | null;
  /** In whole credits. */
  readonly credits: number | null;
  /** Sequence number of the ledger entry. */
  readonly seq: number | null;
}

const MICROS = 1_000_000;
/** Actions that people take on a task, apart from reading it. */
const MARKS: Readonly<Record<string, string>> = {
  "task.cancel": "Cancelled",
  "oversight.approve": "Approved",
  "oversight.deny": "Denied",
  "oversight.override": "Output overridden",
  "oversight.disregard": "Output disregarded",
  "payload.erase": "Content erased",
};

/** The time spans recorded in a task's ledger entries, oldest first. */
export function spansOf(task: Task, entries: readonly LedgerEntry[]): readonly TimelineSpan[] {
  const outcomes = new Map<number, LedgerEntry>();
  for (const entry of entries)
    if (entry.phase === "outcome" && entry.ref !== null) outcomes.set(entry.ref, entry);
  const end = task.finished_at === null ? null : Date.parse(task.finished_at);
  return entries.flatMap((entry): TimelineSpan[] => {
    if (entry.action === "model.call" || entry.action === "tool.call") {
      if (entry.phase === "outcome") return [];
      if (entry.outcome === "pending") return [personSpan(entry, entries, end)];
      return [callSpan(entry, outcomes.get(entry.seq), end)];
    }
    const name = MARKS[entry.action];
    if (name === undefined || entry.phase === "intent") return [];
    const at = Date.parse(entry.ts);
    const who = entry.oversight?.person;
    return [
      {
        key: String(entry.seq),
        kind: "mark",
        name: who === undefined ? name : `${name} by ${who}`,
        from: at,
        to: at,
        outcome: entry.outcome === "denied" ? "denied" : null,
        credits: null,
        seq: entry.seq,
      },
    ];
  });
}

function callSpan(intent: LedgerEntry, outcome: LedgerEntry | undefined, end: number | null): TimelineSpan {
  const from = Date.parse(intent.ts);
  const isAlone = intent.phase === "single";
  const last = outcome ? Date.parse(outcome.ts) : isAlone ? from : end;
  const word = isAlone ? intent.outcome : (outcome?.outcome ?? (end === null ? null : "unknown"));
  const code = outcome?.code ?? intent.code;
  return {
    key: String(intent.seq),
    kind: intent.action === "model.call" ? "model" : "tool",
    name: (intent.action === "model.call" ? intent.model : intent.tool) ?? "–",
    from,
    to: last,
    outcome: word !== null && word !== "succeeded" && code !== null ? `${word}: ${code}` : word,
    credits: outcome?.credits == null ? null : outcome.credits / MICROS,
    seq: intent.seq,
  };
}

/** How long a call waited for people: until the first later decision about its tool. */
function personSpan(asked: LedgerEntry, entries: readonly LedgerEntry[], end: number | null): TimelineSpan {
  const answer = entries.find(
    ({ seq, tool, action, outcome }) =>
      seq > asked.seq && tool === asked.tool && (action.startsWith("oversight.") || outcome !== "pending"),
  );
  return {
    key: String(asked.seq),
    kind: "person",
    name: `Waiting for approval: ${asked.tool ?? "a tool"}`,
    from: Date.parse(asked.ts),
    to: answer ? Date.parse(answer.ts) : end,
    outcome: null,
    credits: null,
    seq: asked.seq,
  };
}

/** The same without the ledger: the task itself knows only its tool calls. */
export function spansOfTools(task: Task): readonly TimelineSpan[] {
  return task.tools_called.map((call) => {
    const from = Date.parse(call.started_at);
    return {
      key: call.id,
      kind: "tool",
      name: call.tool,
      from,
      to: call.duration_ms === null ? null : from + call.duration_ms,
      outcome: call.status,
      credits: null,
      seq: null,
    };
  });
}

/** The time before the first start. If the task never started, until its end. */
export function queueSpan(task: Task): TimelineSpan {
  const to = task.started_at ?? task.finished_at;
  return {
    key: "queue",
    kind: "queue",
    name: "In the queue",
    from: Date.parse(task.created_at),
    to: to === null ? null : Date.parse(to),
    outcome: null,
    credits: null,
    seq: null,
  };
}
