import type { TimedEntry } from "../evidence-file.ts";
import type { Seen } from "../soak.ts";
import { TOOL_PRICE } from "../world.ts";
import { reservedBy } from "./budgets.ts";

const MICROS = 1_000_000;

/** Sums that differ between the calls' entries, the tasks, and the budgets. */
export function* creditFaults({ file, tasks, creditsThisMonth }: Seen): Generator<string> {
  const calls = file.entries.filter(
    ({ action, phase }) => phase === "outcome" && (action === "model.call" || action === "tool.call"),
  );
  const ofTask = Map.groupBy(calls, ({ task }) => task);
  const dispatched = new Map(
    file.entries
      .filter(({ action, phase }) => action === "task.dispatch" && phase === "outcome")
      .map((entry) => [entry.task, entry.credits ?? 0]),
  );
  for (const { id, credits } of file.tasks) {
    const sum = (ofTask.get(id) ?? []).reduce((total, entry) => total + (entry.credits ?? 0), 0);
    if (sum !== credits) yield `${id} consumed ${credits}, its calls' entries say ${sum}`;
    if (dispatched.get(id) !== credits)
      yield `${id} consumed ${credits}, its end's entry says ${dispatched.get(id)}`;
    const shown = Math.round((tasks.get(id)?.credits_consumed ?? 0) * MICROS);
    if (shown !== credits) yield `${id} consumed ${credits}, and shows ${shown}`;
  }
  for (const { task, seq } of calls) {
    if (task !== undefined && !tasks.has(task)) yield `${seq} is a call of ${task}, which is not there`;
  }
  yield* priceFaults(calls, file.entries);
  const open = file.tasks.filter(({ id, open_model_call }) => tasks.has(id) && open_model_call !== null);
  for (const { id } of open) yield `${id} has ended, but its model call is still in flight`;
  for (const { task_id, id, outcome_seq } of file.toolCalls) {
    if (outcome_seq === null) yield `${task_id} has ended, but its call ${id} is still in flight`;
  }
  const all = calls.reduce((total, entry) => total + (entry.credits ?? 0), 0);
  const spent = file.spending.reduce((total, { credits }) => total + credits, 0);
  if (all !== spent) yield `entries say ${all} was spent, budgets count ${spent}`;
  const months = new Set(file.spending.map(({ day }) => day.slice(0, 7)));
  const usage = Math.round(creditsThisMonth * MICROS);
  if (months.size <= 1 && usage !== spent) yield `budgets count ${spent}, the workspace shows ${usage}`;
}

/**
 * Calls whose charge was not their price, and lost calls whose charge was not what was reserved for them. A call that ended
 * while the store was away is recorded like a lost one, but its usage is known.
 */
function* priceFaults(outcomes: readonly TimedEntry[], entries: readonly TimedEntry[]): Generator<string> {
  const intents = new Map(
    entries.filter(({ phase }) => phase === "intent").map((entry) => [entry.seq, entry]),
  );
  for (const { seq, ref, action, outcome, code, tool, detail, credits = 0 } of outcomes) {
    const intent = ref === undefined ? undefined : intents.get(ref);
    const isLost = (code === "interrupted" || code === "unknown") && detail?.output_tokens === undefined;
    const reserved = intent ? reservedBy(intent) : 0;
    if (isLost && credits !== reserved)
      yield `${seq} was lost and cost ${credits}, with ${reserved} reserved`;
    if (action !== "tool.call") continue;
    const price = tool?.startsWith("up.") === true ? TOOL_PRICE : 0;
    if (reserved !== price) yield `${ref} is a call of ${tool}, and has ${reserved} reserved`;
    if (outcome === "succeeded" && credits !== price)
      yield `${seq} is a call of ${tool}, and cost ${credits}`;
  }
}
