import type { Figure } from "../figures.ts";
import { requestText } from "../load/request.ts";
import { alternate } from "../rounds.ts";
import { createAgent, dispatch, settings, TIER, taskRequest, taskSchema } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { CONNECTIONS, loadFigures } from "./load-figures.ts";

const LEAST_RATE = 0.35;

/**
 * POST of a task, answered once the task and its intent in the ledger are on disk. A model that never answers holds
 * the only slot, so this measures only acceptance, as on a node that is busy with real, slow models.
 */
export async function dispatchTask(workshop: Workshop): Promise<Figure[]> {
  const upstream = await workshop.upstream();
  const gatehouse = await workshop.gatehouse({
    yaml: settings({ upstream: upstream.port, runningTasks: 1 }),
  });
  await createAgent(gatehouse);
  const accepted = await dispatch(gatehouse, TIER.hang);
  const bare = await workshop.bare({ accepted, taskSchema: await taskSchema(gatehouse) });

  const job = {
    request: requestText("POST", "/v1/tasks", { token: gatehouse.admin, body: taskRequest(TIER.hang) }),
    connections: CONNECTIONS,
    spreadMs: 0,
    expect: { status: 202, bytes: Buffer.byteLength(JSON.stringify(accepted)), texts: [] },
  };
  const rounds = await alternate(
    { baseline: () => workshop.load(bare, job), gatehouse: () => workshop.load(gatehouse, job) },
    workshop.rounds,
  );
  await Promise.all([gatehouse.stop(), bare.stop()]);
  await upstream.stop();
  return loadFigures("api.dispatch_task", "POST /v1/tasks", rounds, LEAST_RATE);
}
