import type { ExchangesJob } from "../load/jobs.ts";
import { requestText } from "../load/request.ts";
import { callsIn, openSessions } from "../mcp/client.ts";
import { AGENT, TIER, taskRequest } from "../setup.ts";

/** Where a connection leads, and with which token. */
export interface Place {
  readonly port: number;
  readonly token: string;
}

/** A kind of call that leaves evidence. */
export interface Kind {
  /** A part of the figures' ids. */
  readonly id: string;
  readonly label: string;
  readonly expect: ExchangesJob["expect"];
  /** The requests of one connection, which it repeats in order. */
  requests(place: Place): Promise<string[]>;
}

export const READ: Kind = {
  id: "read",
  label: "GET /v1/agents/:name",
  expect: { status: 200, texts: [`"name":"${AGENT}"`] },
  requests: async ({ token }) => [requestText("GET", `/v1/agents/${AGENT}`, { token })],
};

export const DISPATCH: Kind = {
  id: "dispatch",
  label: "POST /v1/tasks",
  expect: { status: 202, texts: ['"id":"task_', '"status":"'] },
  requests: async ({ token }) => [requestText("POST", "/v1/tasks", { token, body: taskRequest(TIER.hang) })],
};

/** Each connection has a session of its own, opened at the server that it leads to. */
export const CALL_TOOL: Kind = {
  id: "call_tool",
  label: "MCP tools/call",
  expect: { status: 200, texts: ['"structuredContent":{"now":"20'] },
  async requests(place) {
    const call = { method: "tools/call", params: { name: "time__now", arguments: {} } };
    return callsIn(place, await openSessions(place, 1), call)[0] ?? [];
  },
};
