import type { Life } from "../life.ts";
import type { World } from "../world.ts";

/** The agent that has little to spend, and occasionally gets a little more. */
export const THRIFTY = "thrifty";

/** For the first life: enough for three tool calls, or as much as a model's first call reserves. */
export const FIRST_ALLOWANCE = 30_000;
const MOST_MORE = 60_000;
/** More than all tasks of the longest soak cost. */
const ENOUGH = 1_000_000_000_000;
const MICROS = 1_000_000;

/** A requested daily allowance of the agent. It only grows. */
export interface Allowance {
  readonly micros: number;
  /** Milliseconds since the Unix epoch. */
  readonly askedAt: number;
  /** Null if no answer arrived, so it may or may not be in effect. */
  answeredAt: number | null;
}

/** Raises the agent's allowance in some lives, at a moment when its calls may be waiting for it. */
export async function raiseAllowance(world: World, life: Life): Promise<void> {
  if (world.random() < 0.4) return;
  await life.pause(world.random() * 400);
  const last = world.allowances.at(-1)?.micros ?? 0;
  await allow(world, life, last + Math.ceil(world.random() * MOST_MORE));
}

/** Raises the allowance so much that nothing waits any more. */
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
