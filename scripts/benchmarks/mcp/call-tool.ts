import { type Aim, compared, type Figure } from "../figures.ts";
import { residentBytes } from "../processes/usage.ts";
import { alternate } from "../rounds.ts";
import { settings } from "../setup.ts";
import type { Workshop } from "../workshop.ts";
import { callsIn, type McpServer, openSessions } from "./client.ts";
import { CONNECTIONS, loadFigures } from "./load-figures.ts";

const CALL = { method: "tools/call", params: { name: "time__now", arguments: {} } };
const EXPECT = { status: 200, texts: ['"structuredContent":{"now":"20'] };
/** The sessions at once, and the least share of the bare server's rate if there is an aim. */
const LEAST_RATES = [
  [1, 0.5],
  [16, null],
  [CONNECTIONS, 1],
] as const;
const BYTES_PER_MB = 1_000_000;

/**
 * A call to a built-in tool: authenticated, limited, and recorded in the ledger twice, before the call and before the
 * answer.
 */
export async function callTool(workshop: Workshop): Promise<Figure[]> {
  const gatehouse = await workshop.gatehouse({ yaml: settings() });
  const bare = await workshop.bareMcp({ tools: [{ name: "time__now", inputSchema: { type: "object" } }] });
  const token = gatehouse.admin;
  const requestsTo = async (server: McpServer) =>
    callsIn(server, await openSessions(server, CONNECTIONS), CALL);
  const bareRequests = await requestsTo({ port: bare.port, token });
  const gatehouseRequests = await requestsTo({ port: gatehouse.port, token });

  const figures: Figure[] = [];
  for (const [connections, leastRate] of LEAST_RATES) {
    const job = { connections, spreadMs: 0, expect: EXPECT };
    const rounds = await alternate(
      {
        baseline: () => workshop.load(bare, { ...job, request: bareRequests }),
        gatehouse: () => workshop.load(gatehouse, { ...job, request: gatehouseRequests }),
      },
      workshop.rounds,
    );
    const id = connections === CONNECTIONS ? "mcp.call_tool" : `mcp.call_tool_${connections}`;
    const label = `MCP tools/call, ${connections} ${connections === 1 ? "session" : "sessions"}`;
    const aim: Aim | undefined =
      leastRate === null ? undefined : { of: "ratio", relation: ">=", value: leastRate };
    figures.push(...loadFigures({ id, label }, rounds, aim));
  }
  const resident = (pid: number): number | null => {
    const bytes = residentBytes(pid);
    return bytes === null ? null : bytes / BYTES_PER_MB;
  };
  figures.push(
    compared({ id: "mcp.call_tool.resident", label: "  resident after all of these", unit: "MB" }, [
      { baseline: resident(bare.pid), gatehouse: resident(gatehouse.pid) },
    ]),
  );
  await Promise.all([gatehouse.stop(), bare.stop()]);
  return figures;
}
