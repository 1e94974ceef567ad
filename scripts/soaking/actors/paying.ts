import type { Life } from "../life.ts";
import type { World } from "../world.ts";

/** The agent that has little to spend, and gets a little more now and then. */
export const THRIFTY = "thrifty";

/** Before the first life: three calls of a tool, or as much as the first call of a model reserves. */
export const FIRST_ALLOWANCE = 30_000;
const MOST_MORE = 60_000;
/** More than all tasks of the longest soak come to. */
const ENOUGH = 1_000_000_000_000;
const MICROS = 1_000_000;

/** What the agent may spend in a day, as it was asked for. It only grows. */
export interface Allowance {
  readonly micros: number;
  /** Milliseconds since the Unix epoch. */
  readonly askedAt: number;
  /** Null: no answer came, so that it may hold or not. */
  answeredAt: number | null;
}

/** Raises what the agent may spend in some lives, and at a moment at which its calls may be waiting for it. */
export async function raiseAllowance(world: World, life: Life): Promise<void> {
  if (world.random() < 0.4) return;
  await life.pause(world.random() * 400);
  const last = world.allowances.at(-1)?.micros ?? 0;
  await allow(world, life, last + Math.ceil(world.random() * MOST_MORE));
}

/** So much that nothing waits any more. */
export async function allowEnough(world: World, life: Life): Promise<void> {
  await allow(world, life, ENOUGH);
}

async function allow({ allowances }: World, life: Life, micros: number): Promise<void> {
  if (life.isOver) return;
  const allowance: Allowance = { micros, askedAt: Date.now(), answeredAt: null };
  allowances.push(allowance);
  const body = { budget: { credits_per_day: micros / MICROS } };
  const answer = await life.call("PATCH", `/v1/agents/${THRIFTY}`, { body });
  if (answer?.status === 200) allowance.answeredAt = Date.now();
}
