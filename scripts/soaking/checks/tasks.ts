import type { ReadEvent } from "../../../test/support/events.ts";
import { THRIFTY } from "../actors/paying.ts";
import { outputOf } from "../plan.ts";
import type { Seen, TaskView } from "../soak.ts";
import type { AskedTask } from "../task.ts";
import { SCHEDULED } from "../world.ts";

/** The tier of the model that always fails. */
const BROKEN_TIER = 3;

/** Acknowledged tasks that are lost, duplicated, or ended in an impossible way. */
export function* taskFaults({ world, tasks, replays, file }: Seen): Generator<string> {
  const ids = new Map<string, AskedTask>();
  for (const task of world.asked) {
    if (task.id === null) yield `${task.plan.key} was never accepted`;
    else if (ids.has(task.id)) yield `${task.id} is of ${ids.get(task.id)?.plan.key} and of ${task.plan.key}`;
    else ids.set(task.id, task);
  }
  for (const [id, asked] of ids) {
    const task = tasks.get(id);
    if (task === undefined) yield `${asked.plan.key} was accepted as ${id}, and is lost`;
    else if (!endings(asked).has(endingOf(task))) {
      yield `${asked.plan.key} (${id}) ended as ${endingOf(task)}, its cancel was heard: ${asked.cancelled}`;
    }
  }
  for (const { key, id, replayed } of replays) {
    const asked = world.asked.find(({ plan }) => plan.key === key);
    if (id !== asked?.id || replayed !== "true")
      yield `${key} replayed: ${id} instead of ${asked?.id} (${replayed})`;
  }
  const others = file.tasks.filter(({ id }) => !ids.has(id)).map(({ id }) => id);
  const entries = new Map(
    file.entries
      .filter(({ action, phase }) => action === "task.dispatch" && phase === "intent")
      .map((entry) => [entry.task, entry]),
  );
  for (const id of others) {
    // A task that nobody dispatched over REST came from the schedule, or is a client's own call over MCP.
    const entry = entries.get(id);
    const task = tasks.get(id);
    if (entry?.detail?.schedule === undefined && entry?.channel !== "mcp") yield `nobody has asked for ${id}`;
    if (entry?.detail?.schedule !== undefined && task && !scheduledEndings.has(endingOf(task))) {
      yield `${id}, which was scheduled, ended as ${endingOf(task)}`;
    }
  }
}

/** Times of the schedule that led to more than one task. */
export function* scheduleFaults({ file }: Seen): Generator<string> {
  const times = file.entries
    .filter(({ action, phase }) => action === "task.dispatch" && phase === "intent")
    .flatMap(({ detail }) => (detail?.scheduled_at === undefined ? [] : [String(detail.scheduled_at)]));
  for (const [time, of] of Map.groupBy(times, (each) => each)) {
    if (of.length > 1) yield `${time} came to ${of.length} tasks`;
  }
}

/** Checks that each task has one intent, one outcome that agrees with the task, and one final event. */
export function* endFaults({ tasks, file, events }: Seen): Generator<string> {
  const dispatches = Map.groupBy(
    file.entries.filter(({ action, phase }) => action === "task.dispatch" && phase !== "single"),
    ({ task }) => task,
  );
  for (const { id, status } of tasks.values()) {
    const own = (dispatches.get(id) ?? []).map(({ phase, outcome }) => `${phase} ${outcome}`).join(", ");
    if (own !== `intent allowed, outcome ${status}`) yield `${id} is ${status}, and its entries say: ${own}`;
    const last = events.get(id)?.at(-1);
    const ends = events.get(id)?.filter(({ event }) => event === "task.finished").length ?? 0;
    if (ends !== 1) yield `${id} has ${ends} events task.finished`;
    else if (last?.event !== "task.finished" || last.data.status !== status) {
      yield `${id} is ${status}, and its last event is ${last?.event} ${last?.data.status}`;
    }
  }
}

/** Events that are out of order or do not add up to the output, in the store and as readers assembled them. */
export function* eventFaults({ world, tasks, events }: Seen): Generator<string> {
  for (const [id, seen] of events) {
    const task = tasks.get(id);
    for (const [index, event] of seen.entries()) {
      const before = seen[index - 1]?.id ?? 0;
      if (event.id <= before) yield `${id}: event ${event.id} comes after ${before}`;
    }
    // A client's own call has an output that does not come from a model.
    const isTold = seen.some(({ event }) => event === "output.delta");
    if (task?.status === "succeeded" && isTold && textOf(seen) !== task.output) {
      yield `${id}: its events say ${JSON.stringify(textOf(seen))}, its output is ${JSON.stringify(task.output)}`;
    }
  }
  for (const { id, plan, reader } of world.asked) {
    if (id === null || reader === null) continue;
    for (const fault of reader.faults) yield `a reader of ${plan.key} (${id}): ${fault}`;
    const task = tasks.get(id);
    if (reader.finished > 0 && task?.status === "succeeded" && reader.text !== task.output) {
      yield `a reader of ${plan.key} (${id}), who came back ${reader.resumed} times, has ${JSON.stringify(reader.text)}`;
    }
  }
}

/** The text since the last time that text was discarded. */
function textOf(events: readonly ReadEvent[]): string {
  const from = events.findLastIndex(({ event }) => event === "output.reset" || event === "tool.result");
  return events
    .slice(from + 1)
    .map(({ event, data }) => (event === "output.delta" ? String(data.text) : ""))
    .join("");
}

export function endingOf({ status, output, error }: TaskView): string {
  return status === "succeeded" ? `succeeded ${output}` : `${status} ${error?.code ?? ""}`.trim();
}

/** Endings that any task may have. Other checks decide whether they were justified. */
const EXCUSED = ["failed interrupted", "cancelled agent_stopped"];
const scheduledEndings: ReadonlySet<string> = new Set([`succeeded ${outputOf(SCHEDULED)}`, ...EXCUSED]);

function endings({ plan, body, cancelled }: AskedTask): ReadonlySet<string> {
  // An acknowledged cancel counts, whatever else happened to the task; a stop that came first takes precedence.
  if (cancelled === "yes") return new Set(["cancelled", "cancelled agent_stopped"]);
  const own = body.tier === BROKEN_TIER ? "failed model_unavailable" : `succeeded ${outputOf(plan)}`;
  return new Set([
    own,
    ...EXCUSED,
    ...(cancelled === "perhaps" ? ["cancelled"] : []),
    ...(body.agent === THRIFTY ? ["failed credits_exhausted"] : []),
  ]);
}
