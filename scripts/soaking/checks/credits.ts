import type { Evidence } from "../soak.ts";

const MICROS = 1_000_000;

/** Sums that differ: what the calls' entries say, what tasks say, and what budgets are held against. */
export function* creditFaults({ file, tasks, creditsThisMonth }: Evidence): Generator<string> {
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
  const all = calls.reduce((total, entry) => total + (entry.credits ?? 0), 0);
  const spent = file.spending.reduce((total, { credits }) => total + credits, 0);
  if (all !== spent) yield `entries say ${all} was spent, budgets count ${spent}`;
  const months = new Set(file.spending.map(({ day }) => day.slice(0, 7)));
  const usage = Math.round(creditsThisMonth * MICROS);
  if (months.size <= 1 && usage !== spent) yield `budgets count ${spent}, the workspace shows ${usage}`;
}
