import { isCall, type TimedEntry } from "../evidence-file.ts";
import type { Lived } from "../server.ts";
import type { Evidence } from "../soak.ts";

/** A task is abandoned when this many processes have died with it in the same step, and not before. */
const DEATHS = 3;

/**
 * Tasks that were abandoned too early, or tried again afterwards. A task that is a client's own call over MCP is lost
 * together with the call, which is not repeated.
 */
export function* givenUpFaults({ tasks, file, lives }: Evidence): Generator<string> {
  const calls = Map.groupBy(file.entries.filter(isCall), ({ task }) => task);
  const ownCalls = new Set(
    file.entries
      .filter(({ action, channel }) => action === "task.dispatch" && channel === "mcp")
      .map(({ task }) => task),
  );
  for (const { id, attempts } of file.tasks) {
    const own = calls.get(id) ?? [];
    if (tasks.get(id)?.error?.code === "interrupted") {
      const deaths = killedIn(lastStep(own), lives, (last) => last.outcome !== "pending").length;
      const isSpent = deaths >= DEATHS && attempts >= DEATHS;
      if (!isSpent && !(ownCalls.has(id) && own.some(isLost))) {
        yield `${id} was abandoned after ${attempts} starts, of which ${deaths} ended in a kill`;
      }
    }
    for (const step of stepsOf(own)) {
      const deadly = killedIn(step, lives, ({ phase }) => phase === "intent")[DEATHS - 1];
      const again = step.find((entry) => entry.phase === "intent" && deadly && at(entry) > deadly.to);
      if (again) yield `${id} continues with ${again.seq}, after ${DEATHS} kills in the same step`;
    }
  }
}

/** A task's calls, split where a model's answer was saved. The answer also belongs to the step that it begins. */
function stepsOf(calls: readonly TimedEntry[]): TimedEntry[][] {
  const steps: TimedEntry[][] = [[]];
  for (const entry of calls) {
    steps.at(-1)?.push(entry);
    if (isAnswer(entry)) steps.push([entry]);
  }
  return steps;
}

function lastStep(calls: readonly TimedEntry[]): TimedEntry[] {
  return stepsOf(calls).at(-1) ?? [];
}

function isLost({ action, phase, code }: TimedEntry): boolean {
  return action === "tool.call" && phase === "outcome" && code === "interrupted";
}

function isAnswer({ action, phase, outcome }: TimedEntry): boolean {
  return action === "model.call" && phase === "outcome" && outcome === "succeeded";
}

/** The killed processes that wrote some of these entries, and whose last such entry satisfies `isRunning`. */
function killedIn(
  entries: readonly TimedEntry[],
  lives: readonly Lived[],
  isRunning: (last: TimedEntry) => boolean,
): Lived[] {
  // The next process records that a call was lost, which is not a sign that the task ran.
  const ofRuns = entries.filter(({ phase, code }) => phase !== "outcome" || code !== "interrupted");
  return lives.filter((life) => {
    const last = ofRuns.findLast((entry) => at(entry) >= life.from && at(entry) <= life.to);
    return life.signal === "SIGKILL" && last !== undefined && isRunning(last);
  });
}

function at({ ts }: TimedEntry): number {
  return Date.parse(ts);
}
