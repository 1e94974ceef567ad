import type { Life } from "../life.ts";
import { type Plan, promptOf, REFUSED } from "../plan.ts";
import type { Heard } from "../task.ts";
import { type AskedTask, TaskReader } from "../task.ts";
import type { World } from "../world.ts";
import { THRIFTY } from "./paying.ts";
import { STOPPED_AGENT } from "./stopping.ts";

const TIER = { steady: 1, flaky: 2, broken: 3 } as const;
/** One in so many is cancelled. */
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

/** New tasks of one round, and again those whose answers were lost: the same key never makes a second task. */
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

/** Asks for a task; whether and when the answer comes is the server's luck. */
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
  // From its beginning: what was read of a task before is what its own reader goes on with.
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

/** An agent that is stopped, or has spent what it had, takes no task; nothing else is a reason here. */
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
  // It had ended: the cancel changes nothing, unless an earlier one whose answer was lost was what ended it.
  else if (answer?.status === 409) task.cancelled = heard;
}

export function pick<T>(random: () => number, choices: readonly [T, ...T[]]): T {
  return choices[Math.floor(random() * choices.length)] ?? choices[0];
}
