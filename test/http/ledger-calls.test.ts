import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { finishedTask } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
let actor: string;
let reader: { secret: string; id: string };
let task: string;
let tokenId: string;

beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("agent", { tier_policy: { tiers: [1] }, tools: [] });
  await gateway.agent("gone");
  const tokens = (await gateway.call("GET", "/v1/tokens")).body.data;
  actor = `token:${tokens[0].id}`;
  reader = (await gateway.call("POST", "/v1/tokens", { body: { name: "r", agent: "agent" } })).body;
  task = await finishedTask(gateway, "agent");
  tokenId = (await gateway.call("POST", "/v1/tokens", { body: { name: "t", scopes: ["tasks:read"] } })).body
    .id;
});
afterAll(() => gateway.stop());

const last = async () => {
  const { body, headers } = await gateway.call("GET", "/v1/ledger?order=desc&limit=1");
  return { entry: body.data[0], own: Number(headers.get("gatehouse-ledger")) };
};

interface Row {
  readonly call: readonly [method: string, path: string, body?: object | string];
  readonly action: string;
  /** Default: succeeded, without a code, not about an agent. */
  readonly shown?: object;
  readonly as?: "reader";
}
const denied = (code: string, more: object = {}) => ({ outcome: "denied", code, ...more });
const ROWS: readonly Row[] = [
  { call: ["GET", "/v1/agents"], action: "agent.list" },
  { call: ["GET", "/v1/agents/agent"], action: "agent.read", shown: { agent: "agent" } },
  {
    call: ["GET", "/v1/agents/nobody"],
    action: "agent.read",
    shown: denied("agent_not_found", { agent: "nobody" }),
  },
  {
    call: ["POST", "/v1/agents", { name: "new", owner: "x", memory_scope: "a" }],
    action: "agent.create",
    shown: { agent: "new" },
  },
  {
    call: ["POST", "/v1/agents", { name: "agent", owner: "x", memory_scope: "a" }],
    action: "agent.create",
    shown: denied("agent_exists", { agent: "agent" }),
  },
  { call: ["POST", "/v1/agents", {}], action: "agent.create", shown: denied("validation_failed") },
  { call: ["POST", "/v1/agents", "{"], action: "agent.create", shown: denied("invalid_json") },
  { call: ["PATCH", "/v1/agents/agent", { owner: "y" }], action: "agent.update", shown: { agent: "agent" } },
  {
    call: ["PATCH", "/v1/agents/agent", { name: "y" }],
    action: "agent.update",
    shown: denied("validation_failed"),
  },
  { call: ["POST", "/v1/agents/gone/stop"], action: "oversight.stop", shown: { agent: "gone" } },
  {
    call: ["POST", "/v1/tasks", { agent: "gone", prompt: "x" }],
    action: "task.dispatch",
    shown: denied("agent_stopped", { agent: "gone" }),
  },
  { call: ["POST", "/v1/agents/gone/resume"], action: "oversight.resume", shown: { agent: "gone" } },
  { call: ["DELETE", "/v1/agents/gone"], action: "agent.archive", shown: { agent: "gone" } },
  { call: ["GET", "/v1/tasks"], action: "task.list" },
  { call: ["GET", "/v1/tasks/:task"], action: "task.read", shown: { agent: "agent", task: ":task" } },
  { call: ["GET", "/v1/tasks/task_0"], action: "task.read", shown: denied("not_found") },
  {
    call: ["GET", "/v1/tasks/:task/events"],
    action: "task.events",
    shown: { agent: "agent", task: ":task" },
  },
  {
    call: ["POST", "/v1/tasks/:task/cancel"],
    action: "task.cancel",
    shown: denied("task_finished", { agent: "agent", task: ":task" }),
  },
  {
    call: ["POST", "/v1/tasks", { agent: "nobody", prompt: "x" }],
    action: "task.dispatch",
    shown: denied("agent_not_found", { agent: "nobody" }),
  },
  {
    call: ["POST", "/v1/tasks", { agent: "agent", prompt: "x", tier: 2 }],
    action: "task.dispatch",
    shown: denied("tier_forbidden", { agent: "agent", tier: 2 }),
  },
  {
    call: ["POST", "/v1/tasks", { agent: "agent", prompt: "x", tier: 9 }],
    action: "task.dispatch",
    shown: denied("unknown_tier", { agent: "agent", tier: 9 }),
  },
  {
    call: ["POST", "/v1/tasks", { agent: "agent", prompt: "x", tools: ["time.now"] }],
    action: "task.dispatch",
    shown: denied("tool_forbidden", { agent: "agent", tier: 1 }),
  },
  {
    call: ["POST", "/v1/tasks", { agent: "agent", prompt: "x", tools: ["time.never"] }],
    action: "task.dispatch",
    shown: denied("unknown_tool", { agent: "agent", tier: 1 }),
  },
  {
    call: ["POST", "/v1/tasks?stream=true", { agent: "other", prompt: "x" }],
    action: "task.dispatch",
    shown: denied("agent_forbidden", { agent: "other" }),
    as: "reader",
  },
  { call: ["GET", "/v1/tasks"], action: "task.list", shown: { agent: "agent" }, as: "reader" },
  {
    call: ["GET", "/v1/tokens"],
    action: "token.list",
    shown: denied("scope_missing", { agent: "agent" }),
    as: "reader",
  },
  { call: ["GET", "/v1/tokens"], action: "token.list" },
  { call: ["GET", "/v1/tokens?x=1"], action: "token.list", shown: denied("validation_failed") },
  {
    call: ["POST", "/v1/tokens", { name: "n", agent: "agent" }],
    action: "token.issue",
    shown: { agent: "agent" },
  },
  { call: ["POST", "/v1/tokens", { name: "n" }], action: "token.issue", shown: denied("validation_failed") },
  {
    call: ["POST", "/v1/tokens/:token/rotate", { grace: "1m" }],
    action: "token.rotate",
    shown: { detail: { token: ":token", grace_ms: 60_000 } },
  },
  { call: ["DELETE", "/v1/tokens/:token"], action: "token.revoke", shown: { detail: { token: ":token" } } },
  { call: ["DELETE", "/v1/tokens/:token"], action: "token.revoke", shown: denied("not_found") },
  { call: ["GET", "/v1/models"], action: "model.list" },
  { call: ["GET", "/v1/models/tier:1"], action: "model.read" },
  { call: ["GET", "/v1/models/none/such"], action: "model.read", shown: denied("model_not_found") },
  { call: ["GET", "/v1/tiers"], action: "tier.list" },
  { call: ["GET", "/v1/workspace"], action: "workspace.read" },
  {
    call: ["PATCH", "/v1/workspace", { limits: { concurrent_tasks: 9 }, budget: { credits_per_month: 1.5 } }],
    action: "config.change",
    shown: { detail: { concurrent_tasks: 9, budget: "1.5" } },
  },
  {
    call: ["PATCH", "/v1/workspace", { limits: 1 }],
    action: "config.change",
    shown: denied("validation_failed"),
  },
  { call: ["GET", "/v1/ledger"], action: "ledger.read" },
  { call: ["GET", "/v1/ledger/1"], action: "ledger.read" },
  { call: ["GET", "/v1/ledger/99999"], action: "ledger.read", shown: denied("not_found") },
];

describe("a call leaves exactly one entry, and its answer names it", () => {
  test.each(ROWS.map((row) => ({ ...row, title: `${row.call[0]} ${row.call[1]} → ${row.action}` })))(
    "$title",
    async ({ call: [method, path, body], action, shown = {}, as }) => {
      const fill = (text: string) => text.replace(":task", task).replace(":token", tokenId);
      const before = await last();
      const answer = await gateway.call(method, fill(path), {
        ...(typeof body === "string" ? { raw: body } : body ? { body } : {}),
        ...(as ? { token: reader.secret } : {}),
      });
      const after = await last();
      expect(after.own - before.own).toBe(2);
      expect(after.entry.seq).toBe(before.own + 1);
      expect(answer.headers.get("gatehouse-ledger")).toBe(String(after.entry.seq));
      const expected = {
        phase: "single",
        ref: null,
        action,
        outcome: "succeeded",
        code: null,
        channel: "rest",
        request_id: answer.headers.get("gatehouse-request-id"),
        actor: as ? `token:${reader.id}` : actor,
        agent: null,
        tier: null,
        model: null,
        task: null,
        tool: null,
        input_hash: null,
        output_hash: null,
        credits: null,
      };
      expect(after.entry).toMatchObject({
        ...expected,
        ...(JSON.parse(fill(JSON.stringify(shown))) as object),
      });
    },
  );
});

test("a dispatch leaves an intent, on disk before it is answered, and the task's calls follow it", async () => {
  const answer = await gateway.call("POST", "/v1/tasks", { body: { agent: "agent", prompt: "hi" } });
  const seq = Number(answer.headers.get("gatehouse-ledger"));
  const { body } = await gateway.call("GET", `/v1/ledger/${seq}`);
  expect(body).toMatchObject({
    phase: "intent",
    action: "task.dispatch",
    outcome: "allowed",
    agent: "agent",
    tier: 1,
    task: answer.body.id,
    actor,
  });
});

test("an unauthenticated call is anonymous, recorded once per source and minute, without what it sent", async () => {
  const answer = await gateway.call("GET", "/v1/agents", { token: "gth_not-a-secret-of-ours" });
  const { body } = await gateway.call("GET", "/v1/ledger?action=auth.refused");
  expect(body.data).toHaveLength(1);
  expect(body.data[0]).toMatchObject({
    actor: "anonymous",
    outcome: "denied",
    code: "invalid_token",
    request_id: answer.body.request_id,
    detail: { source: "127.0.0.1" },
  });
  expect(answer.headers.get("gatehouse-ledger")).toBe(String(body.data[0].seq));
  expect(JSON.stringify(body)).not.toContain("not-a-secret");
});

test("probes, documents and unknown paths leave no entry", async () => {
  const before = await last();
  for (const path of ["/livez", "/readyz", "/metrics", "/openapi.json", "/docs", "/nothing"]) {
    const answer = await gateway.call("GET", path);
    expect(answer.headers.get("gatehouse-ledger")).toBeNull();
  }
  expect((await last()).own - before.own).toBe(1);
});
