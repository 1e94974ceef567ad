import { alone, type Figure } from "../figures.ts";
import { requestText } from "../load/request.ts";
import { alternate } from "../rounds.ts";
import { createAgent, settings, taskRequest } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { CONNECTIONS } from "./load-figures.ts";

/**
 * Complete tasks of `builtin/extractive`. Each client reads its task to `task.finished` before it dispatches the
 * next, so no queue builds up: tasks are accepted at the rate at which they end.
 */
export async function runTasks(workshop: Workshop): Promise<Figure[]> {
  const gatehouse = await workshop.gatehouse({ yaml: settings() });
  await createAgent(gatehouse);
  const job = {
    request: requestText("POST", "/v1/tasks?stream=true", { token: gatehouse.admin, body: taskRequest(1) }),
    connections: CONNECTIONS,
    spreadMs: 0,
    expect: { status: 200, texts: ["event: task.finished", '"status":"succeeded"'] },
  };
  const rounds = await alternate({ gatehouse: () => workshop.load(gatehouse, job) }, workshop.rounds);
  await gatehouse.stop();

  const results = rounds.map((round) => round.gatehouse);
  return [
    alone(
      { id: "api.run_tasks.rate", label: "tasks run to their end", unit: "1/s" },
      results.map((round) => round.perSecond),
    ),
    alone(
      { id: "api.run_tasks.p50", label: "  POST to task.finished p50", unit: "ms" },
      results.map((round) => round.p50),
    ),
    alone(
      { id: "api.run_tasks.p99", label: "  POST to task.finished p99", unit: "ms" },
      results.map((round) => round.p99),
    ),
    alone(
      { id: "api.run_tasks.cpu", label: "  server CPU per operation", unit: "µs" },
      results.map((round) => round.cpuMicros),
    ),
  ];
}
