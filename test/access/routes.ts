import type { TestGateway } from "../support/gateway.ts";

/** One route of the contract's section 3, with a call that succeeds on a new gateway after `prepare`. */
export interface ContractRoute {
  readonly method: string;
  /**
   * `prepare` creates what `:agent`, `:task`, `:dispatch` (the ledger entry), `:document`, `:token`, `:session`,
   * `:connector` and `:schedule` refer to.
   */
  readonly path: string;
  /** Null if any token may call it (see `UNSCOPED`), or any of several scopes is enough. */
  readonly scope: string | null;
  readonly body?: object;
  readonly status: number;
}

/** A connector that is not contacted when it is added. */
const api = (name: string) => ({
  name,
  kind: "openapi",
  base_url: "http://127.0.0.1:9",
  spec: {
    openapi: "3.1.0",
    info: { title: "Pets", version: "1" },
    paths: { "/pets": { get: { operationId: "listPets", responses: { "200": { description: "Pets" } } } } },
  },
});

export const ROUTES: readonly ContractRoute[] = [
  { method: "GET", path: "/v1/agents", scope: "agents:read", status: 200 },
  {
    method: "POST",
    path: "/v1/agents",
    scope: "agents:write",
    body: { name: "made", owner: "tests", memory_scope: "support" },
    status: 201,
  },
  { method: "GET", path: "/v1/agents/:agent", scope: "agents:read", status: 200 },
  { method: "PATCH", path: "/v1/agents/:agent", scope: "agents:write", body: { owner: "x" }, status: 200 },
  { method: "POST", path: "/v1/agents/:agent/stop", scope: "approvals:write", status: 200 },
  { method: "POST", path: "/v1/agents/:agent/resume", scope: "approvals:write", status: 200 },
  {
    method: "POST",
    path: "/v1/tasks",
    scope: "tasks:write",
    body: { agent: "steady", prompt: "hello" },
    status: 202,
  },
  { method: "GET", path: "/v1/schedules", scope: "tasks:read", status: 200 },
  {
    method: "POST",
    path: "/v1/schedules",
    scope: "tasks:write",
    body: { name: "made", agent: "steady", prompt: "hello", cron: "0 0 1 1 *" },
    status: 201,
  },
  { method: "GET", path: "/v1/schedules/:schedule", scope: "tasks:read", status: 200 },
  {
    method: "PATCH",
    path: "/v1/schedules/:schedule",
    scope: "tasks:write",
    body: { name: "x" },
    status: 200,
  },
  { method: "DELETE", path: "/v1/schedules/:schedule", scope: "tasks:write", status: 204 },
  { method: "GET", path: "/v1/webhooks", scope: "settings:write", status: 200 },
  { method: "GET", path: "/v1/webhooks/deliveries", scope: "settings:write", status: 200 },
  {
    method: "POST",
    path: "/v1/webhooks/deliveries/msg_none/redeliver",
    scope: "settings:write",
    status: 404,
  },
  { method: "GET", path: "/v1/tasks", scope: "tasks:read", status: 200 },
  { method: "GET", path: "/v1/tasks/:task", scope: "tasks:read", status: 200 },
  { method: "GET", path: "/v1/tasks/:task/events", scope: "tasks:read", status: 200 },
  { method: "POST", path: "/v1/tasks/:task/cancel", scope: "tasks:write", status: 409 },
  { method: "GET", path: "/v1/approvals", scope: "approvals:write", status: 200 },
  {
    method: "POST",
    path: "/v1/tasks/:task/approvals/call_none",
    scope: "approvals:write",
    body: { decision: "approve" },
    status: 404,
  },
  {
    method: "POST",
    path: "/v1/tasks/:task/override",
    scope: "approvals:write",
    body: { decision: "disregard", reason: "wrong" },
    status: 200,
  },
  {
    method: "POST",
    path: "/v1/vault/search",
    scope: "vault:read",
    body: { query: "refund" },
    status: 200,
  },
  {
    method: "POST",
    path: "/v1/vault/documents",
    scope: "vault:write",
    body: { title: "Made", text: "A text.", scope: "support" },
    status: 201,
  },
  { method: "GET", path: "/v1/vault/documents", scope: "vault:read", status: 200 },
  { method: "GET", path: "/v1/vault/scopes", scope: "vault:read", status: 200 },
  { method: "GET", path: "/v1/vault/documents/:document", scope: "vault:read", status: 200 },
  { method: "DELETE", path: "/v1/vault/documents/:document", scope: "vault:write", status: 204 },
  { method: "GET", path: "/v1/connectors", scope: "connectors:read", status: 200 },
  { method: "POST", path: "/v1/connectors", scope: "connectors:write", body: api("made"), status: 201 },
  { method: "POST", path: "/v1/connectors/:connector/refresh", scope: "connectors:write", status: 200 },
  { method: "DELETE", path: "/v1/connectors/:connector", scope: "connectors:write", status: 204 },
  { method: "POST", path: "/v1/tools/time.now/call", scope: null, body: { arguments: {} }, status: 200 },
  { method: "GET", path: "/v1/models", scope: null, status: 200 },
  { method: "GET", path: "/v1/models/builtin%2Fextractive", scope: null, status: 200 },
  { method: "GET", path: "/v1/tiers", scope: "agents:read", status: 200 },
  { method: "GET", path: "/v1/ledger", scope: "ledger:read", status: 200 },
  { method: "GET", path: "/v1/ledger/1", scope: "ledger:read", status: 200 },
  { method: "GET", path: "/v1/ledger/1/proof", scope: "ledger:read", status: 200 },
  { method: "GET", path: "/v1/ledger/checkpoint", scope: "ledger:read", status: 200 },
  { method: "GET", path: "/v1/ledger/key", scope: "ledger:read", status: 200 },
  { method: "GET", path: "/v1/ledger/consistency?from=1", scope: "ledger:read", status: 200 },
  // Entry 1 is not a client's model call.
  { method: "GET", path: "/v1/ledger/1/payload", scope: "tasks:read", status: 404 },
  { method: "DELETE", path: "/v1/ledger/:dispatch/payload", scope: "settings:write", status: 204 },
  { method: "GET", path: "/v1/usage", scope: "ledger:read", status: 200 },
  { method: "GET", path: "/v1/tokens", scope: "tokens:write", status: 200 },
  {
    method: "POST",
    path: "/v1/tokens",
    scope: "tokens:write",
    body: { name: "made", scopes: ["tokens:write"] },
    status: 201,
  },
  { method: "POST", path: "/v1/tokens/:token/rotate", scope: "tokens:write", status: 200 },
  { method: "DELETE", path: "/v1/tokens/:token", scope: "tokens:write", status: 204 },
  { method: "POST", path: "/v1/session", scope: null, status: 201 },
  { method: "GET", path: "/v1/session", scope: null, status: 200 },
  { method: "DELETE", path: "/v1/session", scope: null, status: 204 },
  { method: "GET", path: "/v1/sessions", scope: "tokens:write", status: 200 },
  { method: "DELETE", path: "/v1/sessions/:session", scope: "tokens:write", status: 204 },
  { method: "GET", path: "/v1/workspace", scope: "settings:write", status: 200 },
  {
    method: "PATCH",
    path: "/v1/workspace",
    scope: "settings:write",
    body: { limits: { enforcement: "soft" } },
    status: 200,
  },
  { method: "GET", path: "/v1/nodes", scope: "admin", status: 200 },
  { method: "POST", path: "/v1/workspace/stop", scope: "approvals:write", status: 200 },
  { method: "POST", path: "/v1/workspace/resume", scope: "approvals:write", status: 200 },
  { method: "DELETE", path: "/v1/agents/:agent", scope: "agents:write", status: 204 },
];

/**
 * Operations of the OpenAPI document that any token may call: access to each resource is checked inside the handler.
 */
export const UNSCOPED: readonly string[] = [
  "POST /v1/tools/{name}/call",
  "POST /v1/session",
  "GET /v1/session",
  "GET /v1/events",
  "DELETE /v1/session",
];

export const NAMED_SCOPES = [
  "agents:read",
  "agents:write",
  "tasks:read",
  "tasks:write",
  "vault:read",
  "vault:write",
  "connectors:read",
  "connectors:write",
  "ledger:read",
  "approvals:write",
  "tokens:write",
  "settings:write",
  "models:call",
] as const;

export interface Prepared {
  /** The route's path with its placeholders filled in. */
  fill(path: string): string;
  readonly task: string;
  readonly document: string;
  readonly tokenId: string;
}

/**
 * Creates an agent that may be deleted, one that stays (`steady`), a finished task of that one, a document, a token,
 * a session, a connector and a schedule.
 */
export async function prepare(gateway: TestGateway, agent: string): Promise<Prepared> {
  const { call } = gateway;
  await gateway.agent(agent);
  const steady = await call("GET", "/v1/agents/steady");
  if (steady.status === 404) await gateway.agent("steady");
  const task = await finishedTask(gateway, "steady");
  const written = await call("POST", "/v1/vault/documents", {
    body: { title: "Spent", text: "A text.", scope: "support" },
  });
  const document: string = written.body.id;
  const issued = await call("POST", "/v1/tokens", { body: { name: "spent", scopes: ["tokens:write"] } });
  const tokenId: string = issued.body.id;
  const dispatches = await call("GET", "/v1/ledger?action=task.dispatch&limit=200");
  const dispatch: { seq: number } | undefined = dispatches.body.data.find(
    (entry: { task: string; phase: string }) => entry.task === task && entry.phase === "intent",
  );
  const connector = `of_${agent}`;
  await call("POST", "/v1/connectors", { body: api(connector) });
  const scheduled = await call("POST", "/v1/schedules", {
    body: { name: "spent", agent: "steady", prompt: "hello", cron: "0 0 1 1 *" },
  });
  const schedule: string = scheduled.body.id;
  // With a token that can be managed with only `tokens:write`.
  const browser = await call("POST", "/v1/tokens", { body: { name: "browser", scopes: ["tokens:write"] } });
  const signedIn = await call("POST", "/v1/session", { token: browser.body.secret });
  const session: string = signedIn.body.session.id;
  return {
    task,
    document,
    tokenId,
    fill: (path) =>
      path
        .replace(":agent", agent)
        .replace(":task", task)
        .replace(":dispatch", String(dispatch?.seq))
        .replace(":document", document)
        .replace(":token", tokenId)
        .replace(":session", session)
        .replace(":connector", connector)
        .replace(":schedule", schedule),
  };
}

/**
 * Dispatches a task and waits for its end.
 * @returns the task's id
 */
export async function finishedTask(
  { url, admin }: Pick<TestGateway, "url" | "admin">,
  agent: string,
  prompt = "hello",
  token = admin,
): Promise<string> {
  const response = await fetch(`${url}/v1/tasks?stream=true`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ agent, prompt }),
  });
  const text = await response.text();
  const id = response.headers.get("gatehouse-task-id");
  if (id === null) throw new Error(`no task (${response.status}): ${text}`);
  return id;
}
