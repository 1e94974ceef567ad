import { isCall, type TimedEntry } from "../evidence-file.ts";
import type { Seen } from "../soak.ts";

/**
 * Calls between a stop and the next resume, of the agent or of the workspace.
 * @param graceMs how long a stop may take to reach the last server
 */
export function* stopFaults({ file }: Seen, graceMs = 0): Generator<string> {
  const stopped = new Map<string, TimedEntry>();
  for (const entry of file.entries) {
    const { seq, action, phase, agent = "" } = entry;
    if (isDone(entry, "oversight.stop")) stopped.set(whoseOf(entry), entry);
    else if (isDone(entry, "oversight.resume")) stopped.delete(whoseOf(entry));
    else if (phase === "intent" && isCall(entry)) {
      const by = stopped.get(agent) ?? stopped.get(EVERYBODY);
      if (by !== undefined && Date.parse(entry.ts) - Date.parse(by.ts) >= graceMs)
        yield `${action} ${seq} of ${agent}, which was stopped by ${by.seq}`;
    }
  }
}

/**
 * Tasks that were ended by a stop that nobody requested.
 * @param graceMs how long a stop may take to reach the last server, which may accept tasks until then
 */
export function* endedByStopFaults({ tasks, file }: Seen, graceMs = 0): Generator<string> {
  const stops = file.entries.filter((entry) => isDone(entry, "oversight.stop"));
  const dispatches = file.entries.filter(({ action }) => action === "task.dispatch");
  const ofTask = Map.groupBy(dispatches, ({ task }) => task);
  for (const { id, error } of tasks.values()) {
    if (error?.code !== "agent_stopped") continue;
    const begun = ofTask.get(id)?.find(({ phase }) => phase === "intent");
    const ended = ofTask.get(id)?.find(({ phase }) => phase === "outcome");
    const isKnown = stops.some(
      (stop) =>
        [EVERYBODY, begun?.agent].includes(whoseOf(stop)) &&
        (stop.seq > (begun?.seq ?? Number.POSITIVE_INFINITY) ||
          Date.parse(begun?.ts ?? "") - Date.parse(stop.ts) < graceMs) &&
        // A stop takes effect before it is written, so the end of a task may be recorded first.
        (stop.oversight?.decided_at ?? stop.ts) <= (ended?.ts ?? ""),
    );
    if (!isKnown) yield `${id} was ended by ${ended?.seq}, and nobody has stopped it`;
  }
}

/** Stands for an agent's name if the whole workspace was stopped. */
const EVERYBODY = "*";

function whoseOf({ agent = "", detail }: TimedEntry): string {
  return detail?.extent === undefined ? agent : EVERYBODY;
}

function isDone({ action, outcome }: TimedEntry, wanted: string): boolean {
  return action === wanted && outcome !== "denied" && outcome !== "failed";
}
