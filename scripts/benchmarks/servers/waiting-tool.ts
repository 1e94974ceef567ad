/**
 * An MCP server over stdio whose tool never answers. It reports the start and the end of each call to the port that
 * it is given.
 */
import { createInterface } from "node:readline";
import { WAITING_TOOL } from "../oversight/names.ts";

const port = process.argv[2];
const tell = (what: "open" | "closed") => fetch(`http://127.0.0.1:${port}/told/${what}`, { method: "POST" });

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line) as {
    id?: unknown;
    method?: string;
    params?: { protocolVersion?: string };
  };
  if (method === "notifications/cancelled") await tell("closed");
  if (id === undefined) continue;
  if (method === "tools/call") {
    await tell("open");
    continue;
  }
  const serverInfo = { name: "waiting", version: "1" };
  const result =
    method === "initialize"
      ? { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo }
      : { tools: [{ name: WAITING_TOOL, inputSchema: { type: "object" } }] };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
}
