import { type Figure, ofBaseline } from "../figures.ts";
import { requestText } from "../load/request.ts";
import { alternate } from "../rounds.ts";
import { AGENT, createAgent, settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { CONNECTIONS, loadFigures } from "./load-figures.ts";

const LEAST_RATE = 0.5;

/** GET of an agent: authenticated, limited, and recorded in the ledger on disk before it is answered. */
export async function readAgent(workshop: Workshop): Promise<Figure[]> {
  const gatehouse = await workshop.gatehouse({ yaml: settings() });
  const agent = await createAgent(gatehouse);
  const bare = await workshop.bare({ agent });
  const ceiling = await workshop.ceiling();

  const request = requestText("GET", `/v1/agents/${AGENT}`, { token: gatehouse.admin });
  const job = { request, connections: CONNECTIONS, spreadMs: 0 };
  const expect = { status: 200, bytes: Buffer.byteLength(JSON.stringify(agent)), texts: [] };
  const rounds = await alternate(
    {
      ceiling: () => workshop.load(ceiling, { ...job, expect: { status: 200, texts: [] } }),
      baseline: () => workshop.load(bare, { ...job, expect }),
      gatehouse: () => workshop.load(gatehouse, { ...job, expect }),
    },
    workshop.rounds,
  );
  await Promise.all([gatehouse.stop(), bare.stop(), ceiling.stop()]);

  const fastest = rounds.map((round) => round.ceiling.perSecond);
  return [
    ofBaseline({ id: "api.generator.rate", label: "load generator at its fastest", unit: "1/s" }, fastest),
    ...loadFigures("api.read_agent", "GET /v1/agents/:name", rounds, LEAST_RATE),
  ];
}
