import type { Life } from "../life.ts";
import { type Plan, promptOf, REFUSED } from "../plan.ts";
import type { Heard } from "../task.ts";
import { type AskedTask, TaskReader } from "../task.ts";
import type { World } from "../world.ts";
import { THRIFTY } from "./paying.ts";
import { STOPPED_AGENT } from "./stopping.ts";

const TIER = { steady: 1, flaky: 2, broken: 3 } as const;
/** One task in this many is cancelled. */
const CANCELLED = 12;
const STEPS: readonly (readonly (readonly string[])[])[] = [
  [],
  [],
  [["time__now"]],
  [["up__send"]],
  [["up__look"], ["api__order"]],
  [["up__send", "api__read"]],
  [[`${REFUSED}api__order`, "up__look", "api__order"]],
  [["api__order", "up__look", "up__send"], ["up__send"]],
];
const TOOLS = ["up.send", "up.look", "api.order", "api.read", "time.now"];

/**
 * Dispatches a round's new tasks, and again those whose answers were lost. The same key never creates a second task.
 */
export async function dispatchTasks(world: World, life: Life, count: number): Promise<void> {
  for (let n = 0; n < count; n++) world.asked.push(newTask(world, `task-${world.asked.length}`));
  const unanswered = world.asked.filter(({ id }) => id === null);
  const isCancelled = new Set(unanswered.filter(() => world.random() * CANCELLED < 1));
  await Promise.all(
    unanswered.map(async (task) => {
      await life.pause(world.random() * 250);
      await dispatch(world, life, task);
      if (task.id === null || !isCancelled.has(task)) return;
      await life.pause(world.random() * 250);
      await cancel(life, task);
    }),
  );
}

function newTask({ random }: World, key: string): AskedTask {
  const steps = STEPS[Math.floor(random() * STEPS.length)] ?? [];
  const plan: Plan = { key, steps };
  const chance = random();
  const tier = chance < 0.7 ? TIER.steady : chance < 0.95 ? TIER.flaky : TIER.broken;
  const agent = pick(random, ["helper", "helper", "other", "careful", "double", "stopped", THRIFTY]);
  const tools = steps.length === 0 ? {} : { tools: TOOLS };
  return {
    plan,
    body: { agent, prompt: promptOf(plan), tier, ...tools },
    isStreamed: random() < 0.2,
    id: null,
    cancelled: "no",
    reader: random() < 0.4 ? new TaskReader() : null,
  };
}

/** Requests a task. Whether and when the answer arrives depends on the server's luck. */
async function dispatch(world: World, life: Life, task: AskedTask): Promise<void> {
  const headers = { "idempotency-key": task.plan.key };
  if (!task.isStreamed) {
    const answer = await life.call("POST", "/v1/tasks", { body: task.body, headers });
    if (answer?.status === 202) taken(world, task, (answer.body as { id: string }).id);
    else if (answer !== null) refused(world, task, answer.status, answer.text);
    return;
  }
  let begun = () => {};
  const isBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const { reader } = task;
  // From the beginning of the stream. If some of a task was read earlier, its own reader continues.
  const reads = reader !== null && reader.lastId === 0 && !reader.isReading ? reader : null;
  if (reads) reads.isReading = true;
  const streaming = life
    .follow(
      "POST",
      "/v1/tasks?stream=true",
      { body: task.body, headers },
      {
        begun({ status, headers: answered }) {
          const id = answered.get("gatehouse-task-id");
          if (status === 200 && id !== null) taken(world, task, id);
          else refused(world, task, status, "to a stream");
          begun();
        },
        event: (event) => reads?.read(event),
      },
    )
    .then(() => {})
    .finally(() => {
      if (reads) reads.isReading = false;
      begun();
    });
  world.inLife(streaming);
  await isBegun;
}

function taken({ faults }: World, task: AskedTask, id: string): void {
  if (task.id !== null && task.id !== id) faults.add("tasks", `${task.plan.key} made ${task.id} and ${id}`);
  task.id = id;
}

/** A stopped agent, or one that has spent its credits, accepts no task. Any other refusal is a fault. */
function refused({ faults, stops }: World, task: AskedTask, status: number, text: string): void {
  if (status === 409 && (task.body.agent === STOPPED_AGENT || stops.asked > 0)) return;
  if (status === 402 && task.body.agent === THRIFTY) return;
  if (status < 500) faults.add("tasks", `${task.plan.key} was refused with ${status} ${text}`);
}

async function cancel(life: Life, task: AskedTask): Promise<void> {
  const heard: Heard = task.cancelled;
  task.cancelled = heard === "no" ? "perhaps" : heard;
  const answer = await life.call("POST", `/v1/tasks/${task.id}/cancel`);
  if (answer?.status === 200) task.cancelled = "yes";
  // The task had already ended, so the cancel changes nothing, unless an earlier cancel whose answer was lost had
  // ended it.
  else if (answer?.status === 409) task.cancelled = heard;
}

export function pick<T>(random: () => number, choices: readonly [T, ...T[]]): T {
  return choices[Math.floor(random() * choices.length)] ?? choices[0];
}
