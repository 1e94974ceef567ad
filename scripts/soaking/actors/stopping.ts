import type { Life } from "../life.ts";
import type { World } from "../world.ts";

/** The agent whose tasks are stopped. */
export const STOPPED_AGENT = "stopped";

/** Stops an agent in some lives, and lets it work again in most. */
export async function stopAndResume(world: World, life: Life): Promise<void> {
  const path = `/v1/agents/${STOPPED_AGENT}`;
  if (world.random() < 0.7) await resumeAgent(life);
  if (world.random() < 0.6) return;
  await life.pause(world.random() * 300);
  await life.call("POST", `${path}/stop`);
}

export async function resumeAgent(life: Life): Promise<void> {
  await life.call("POST", `/v1/agents/${STOPPED_AGENT}/resume`);
}
