import type { Gatehouse } from "../processes/gatehouse.ts";
import { createAgent, TIER, taskRequest } from "../setup.ts";

/** Runs before the first that counts, so that the store has its usual depth and the code is compiled. */
const EARLIER = 200;

/** Creates the agent and runs it a few times. */
export async function warmUp(gatehouse: Gatehouse): Promise<void> {
  await createAgent(gatehouse);
  await runAlone(gatehouse, EARLIER);
}

/**
 * Runs tasks without tools, one after another, each read to its end.
 * @throws Error if one does not succeed
 */
export async function runAlone({ port, admin }: Gatehouse, count: number): Promise<void> {
  for (let run = 0; run < count; run++) {
    const response = await fetch(`http://127.0.0.1:${port}/v1/tasks?stream=true`, {
      method: "POST",
      headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
      body: JSON.stringify(taskRequest(TIER.short)),
    });
    const text = await response.text();
    if (!text.includes('"status":"succeeded"')) throw new Error(`a run has not succeeded: ${text}`);
  }
}
