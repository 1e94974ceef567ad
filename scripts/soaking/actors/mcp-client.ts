import type { Life } from "../life.ts";
import type { World } from "../world.ts";

const PROTOCOL = "2025-11-25";

/** A tool call that a client makes directly over MCP. */
export interface OwnCall {
  readonly id: string;
  /** Whether an answer arrived that was not an error. */
  isAnswered: boolean;
}

/** A client that opens a session and calls a tool again and again. Some agents' calls wait for a person. */
export async function callOverMcp(world: World, life: Life, token: string): Promise<void> {
  const session = await openSession(life, token);
  for (let n = 0; session !== null && !life.isOver; n++) {
    const call: OwnCall = { id: `own-${world.ownCalls.length}`, isAnswered: false };
    world.ownCalls.push(call);
    const params = { name: "up__send", arguments: { id: call.id } };
    const answer = await send(life, token, session, {
      jsonrpc: "2.0",
      id: n + 1,
      method: "tools/call",
      params,
    });
    // Either JSON, or a stream of events of which the last contains the answer.
    call.isAnswered = answer !== null && /"result"/.test(answer) && !/"isError":true/.test(answer);
    await life.pause(world.random() * 200);
  }
}

async function openSession(life: Life, token: string): Promise<string | null> {
  const clientInfo = { name: "soak", version: "1" };
  const params = { protocolVersion: PROTOCOL, capabilities: {}, clientInfo };
  const answer = await life.call("POST", "/mcp", {
    token,
    headers: { accept: "application/json, text/event-stream" },
    body: { jsonrpc: "2.0", id: 0, method: "initialize", params },
  });
  const session = answer?.headers.get("mcp-session-id") ?? null;
  if (session !== null)
    await send(life, token, session, { jsonrpc: "2.0", method: "notifications/initialized" });
  return session;
}

async function send(life: Life, token: string, session: string, body: object): Promise<string | null> {
  const headers = {
    accept: "application/json, text/event-stream",
    "mcp-session-id": session,
    "mcp-protocol-version": PROTOCOL,
  };
  return (await life.call("POST", "/mcp", { token, headers, body }))?.text ?? null;
}
