import { compared, type Figure } from "../figures.ts";
import { alternate } from "../rounds.ts";
import { settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { DISPATCH, READ } from "./kinds.ts";
import { Nodes } from "./nodes.ts";
import { startPostgres } from "./postgres.ts";
import { createWorkspaces } from "./workspaces.ts";

/** One call at a time, on one of two servers that share a store, beside a server with a data directory. */
export async function latency(workshop: Workshop): Promise<Figure[]> {
  const postgres = await startPostgres(workshop);
  const upstream = await workshop.upstream();
  const yaml = settings({ upstream: upstream.port, runningTasks: 1 });
  const local = await Nodes.local(workshop, yaml);
  const shared = await Nodes.shared(workshop, postgres, [yaml, yaml]);
  const [localToken = ""] = await createWorkspaces(local.first, 1);
  const [sharedToken = ""] = await createWorkspaces(shared.first, 1);

  const figures: Figure[] = [];
  for (const kind of [READ, DISPATCH]) {
    const ask = async ({ first }: Nodes, token: string) => {
      const request = [await kind.requests({ port: first.port, token })];
      const { pid, port } = first;
      return workshop.load({ pid, port }, { request, connections: 1, spreadMs: 0, expect: kind.expect });
    };
    const rounds = await alternate(
      { baseline: () => ask(local, localToken), gatehouse: () => ask(shared, sharedToken) },
      workshop.rounds,
    );
    const pairs = (of: "p50" | "p99") =>
      rounds.map(({ baseline, gatehouse }) => ({ baseline: baseline[of], gatehouse: gatehouse[of] }));
    const id = `scale.latency.${kind.id}`;
    figures.push(
      compared({ id: `${id}.p50`, label: `one ${kind.label}, p50`, unit: "ms" }, pairs("p50")),
      compared({ id: `${id}.p99`, label: "  p99", unit: "ms" }, pairs("p99")),
    );
  }
  await Promise.all([local.stop(), shared.stop()]);
  await upstream.stop();
  await postgres.remove();
  return figures;
}
