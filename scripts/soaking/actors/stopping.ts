import type { Life } from "../life.ts";
import type { World } from "../world.ts";

/** The agent whose tasks get stopped. */
export const STOPPED_AGENT = "stopped";

/** Stops an agent in some lives, and resumes it in most. */
export async function stopAndResume(world: World, life: Life): Promise<void> {
  const path = `/v1/agents/${STOPPED_AGENT}`;
  if (world.random() < 0.7) await resumeAgent(life);
  if (world.random() < 0.6) return;
  await life.pause(world.random() * 300);
  await life.call("POST", `${path}/stop`);
}

/** Stops the whole workspace in a few lives. It is resumed in the same life or at the beginning of the next. */
export async function stopWorkspaceAndResume(world: World, life: Life): Promise<void> {
  await resumeWorkspace(world, life);
  if (world.random() < 0.85) return;
  await life.pause(world.random() * 600);
  if (life.isOver) return;
  world.stops.asked++;
  world.stops.mayHold = true;
  await life.call("POST", "/v1/workspace/stop");
  await life.pause(world.random() * 150);
  await resumeWorkspace(world, life);
}

export async function resumeWorkspace({ stops }: World, life: Life): Promise<void> {
  if (!stops.mayHold) return;
  const answer = await life.call("POST", "/v1/workspace/resume");
  if (answer?.status === 200) stops.mayHold = false;
}

export async function resumeAgent(life: Life): Promise<void> {
  await life.call("POST", `/v1/agents/${STOPPED_AGENT}/resume`);
}
