import type { Figure } from "../figures.ts";
import { alternate } from "../rounds.ts";
import { settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { callsIn, openSessions, toolsOf } from "./client.ts";
import { connectUpstream } from "./connector.ts";
import { CONNECTIONS, loadFigures } from "./load-figures.ts";

const LIST = { method: "tools/list", params: {} };
const TOOLS = 200;
const RATE = { of: "gatehouse", relation: ">", value: 4_000 } as const;

/** Lists an upstream's 196 tools and Gatehouse's own. The bare server lists exactly the same tools. */
export async function listTools(workshop: Workshop): Promise<Figure[]> {
  const gatehouse = await workshop.gatehouse({ yaml: settings() });
  const token = gatehouse.admin;
  await connectUpstream(gatehouse);
  const tools = await toolsOf({ port: gatehouse.port, token });
  if (tools.length !== TOOLS) throw new Error(`${tools.length} tools are listed instead of ${TOOLS}`);
  const bare = await workshop.bareMcp({ tools });

  const jobFor = async (port: number) => ({
    request: callsIn({ port, token }, await openSessions({ port, token }, CONNECTIONS), LIST),
    connections: CONNECTIONS,
    spreadMs: 0,
    expect: { status: 200, texts: [`"name":${JSON.stringify(tools.at(-1)?.name)}`] },
  });
  const bareJob = await jobFor(bare.port);
  const gatehouseJob = await jobFor(gatehouse.port);
  const rounds = await alternate(
    {
      baseline: () => workshop.load(bare, bareJob),
      gatehouse: () => workshop.load(gatehouse, gatehouseJob),
    },
    workshop.rounds,
  );
  await Promise.all([gatehouse.stop(), bare.stop()]);
  return loadFigures(
    { id: "mcp.list_tools", label: `MCP tools/list of ${TOOLS} tools, ${CONNECTIONS} sessions` },
    rounds,
    RATE,
  );
}
