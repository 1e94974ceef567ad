import type { Static } from "typebox";
import { alone, compared, type Figure } from "../figures.ts";
import { type FirstTokensJob, firstTokensResult } from "../load/jobs.ts";
import { requestText } from "../load/request.ts";
import { freePort } from "../processes/program.ts";
import { CHUNKS, chunk, chunks } from "../servers/script.ts";
import { settings, TIER, taskRequest } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { Nodes } from "./nodes.ts";
import { startPostgres } from "./postgres.ts";
import { createWorkspaces } from "./workspaces.ts";

const CALLERS = 4;

/**
 * Tasks that run on one of two servers, each read on both at once by a process with one clock. The other server's model
 * cannot be reached, so a task that ran there would fail.
 */
export async function streams(workshop: Workshop): Promise<Figure[]> {
  const postgres = await startPostgres(workshop);
  const upstream = await workshop.upstream();
  const nodes = await Nodes.shared(workshop, postgres, [
    settings({ upstream: upstream.port }),
    settings({ upstream: freePort() }),
  ]);
  const [token = ""] = await createWorkspaces(nodes.first, 1);
  const job: FirstTokensJob = {
    kind: "first-tokens",
    port: nodes.port,
    otherPort: nodes.otherPorts[0] ?? 0,
    token,
    request: requestText("POST", "/v1/tasks", { token, body: taskRequest(TIER.late) }),
    callers: CALLERS,
    seconds: workshop.seconds,
    first: chunk(0),
    text: `"status":"succeeded","output":"${chunks(CHUNKS).join("")}"`,
  };
  const measured: Static<typeof firstTokensResult.schema>[] = [];
  for (let round = 0; round <= workshop.rounds; round++) {
    const result = await workshop.generator.ask(job, firstTokensResult);
    // The first round warms up.
    if (round > 0) measured.push(result);
  }
  await nodes.stop();
  await upstream.stop();
  await postgres.remove();

  const pairs = (of: "p50" | "p99") =>
    measured.map(({ own, other }) => ({ baseline: own[of], gatehouse: other[of] }));
  return [
    compared(
      { id: "scale.stream.first50", label: "first token, read on another server, p50", unit: "ms" },
      pairs("p50"),
    ),
    compared({ id: "scale.stream.first99", label: "  p99", unit: "ms" }, pairs("p99")),
    alone(
      { id: "scale.stream.added50", label: "  later than on the task's own server, p50", unit: "ms" },
      measured.map(({ added }) => added.p50),
    ),
    alone(
      { id: "scale.stream.added99", label: "  later than on the task's own server, p99", unit: "ms" },
      measured.map(({ added }) => added.p99),
    ),
    alone(
      { id: "scale.stream.tasks", label: "  tasks of a round", unit: "count" },
      measured.map(({ tasks }) => tasks),
    ),
  ];
}
