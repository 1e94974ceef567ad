/** Calls that are waiting when their token ends. After that, nothing is sent or written for them. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { addConnector, connect, request } from "../mcp/support.ts";
import { FakeClock } from "../support/clock.ts";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { type ScriptedMcp, startScriptedMcp, text } from "../support/scripted-mcp.ts";
import {
  dispatch,
  ended,
  type Gate,
  gate,
  held,
  ledger,
  type Stage,
  startStage,
  until,
} from "../tasks/support.ts";

setDefaultTimeout(60_000);

interface Issued {
  readonly id: string;
  readonly secret: string;
}

let stage: Stage;
let upstream: ScriptedMcp;
let embeddings: FakeEmbeddings;
/** Lets the upstream's tool `slow` answer. */
let slow: Gate;
beforeEach(async () => {
  upstream = startScriptedMcp(["paid", "slow"]);
  embeddings = startFakeEmbeddings();
  slow = gate();
  upstream.answer(async ({ name }) => {
    if (name === "slow") await slow.opened;
    return text("done");
  });
  stage = await startStage({
    clock: new FakeClock(),
    tiers: { 1: ["a"] },
    providers: { words: `{ kind: openai-compatible, base_url: "${embeddings.baseUrl}" }` },
    limits: { concurrent_tasks: 1, enforcement: "enforced" },
    more: 'embeddings: { model: words/small }\ntools: { "up.*": 0.25 }',
  });
  await addConnector(stage.gateway, "up", upstream.url);
  await stage.gateway.agent("clerk", { budget: { credits_per_day: 0.25 } });
  await stage.gateway.agent("plain");
});
afterEach(async () => {
  slow.open();
  await stage.stop();
  await upstream.close();
  await embeddings.stop();
});

async function issue(more: object = { scopes: ["admin"] }): Promise<Issued> {
  return (await stage.gateway.call("POST", "/v1/tokens", { body: { name: "late", ...more } })).body as Issued;
}

async function revoke({ id }: Issued): Promise<void> {
  expect((await stage.gateway.call("DELETE", `/v1/tokens/${id}`)).status).toBe(204);
}

const codeOf = ({ status, body }: { status: number; body: { code?: string } | null }) => [status, body?.code];
const REFUSED = [401, "invalid_token"];

/** The token's entries as `action phase outcome code`. */
async function entriesOf({ id }: Issued): Promise<string[]> {
  return (await ledger(stage.gateway))
    .filter(({ actor }) => actor === `token:${id}`)
    .map(({ action, phase, outcome, code }) => [action, phase, outcome, code].filter(Boolean).join(" "));
}

describe("a tool call that waits for its budget", () => {
  /** Reserves the agent's whole budget. */
  async function reserve(): Promise<{ readonly first: Promise<unknown> }> {
    const client = await connect(stage.gateway, { token: await stage.gateway.token({ agent: "clerk" }) });
    const first = client.call("up__slow");
    await until(() => upstream.calls.length === 1);
    return { first };
  }
  /** Waits until any call with room would have proceeded, because each of these requests passes through the store. */
  const turns = async () => {
    for (let turn = 0; turn < 20; turn++) await stage.gateway.call("GET", "/v1/agents");
  };
  const more = async () => {
    const body = { budget: { credits_per_day: 10 } };
    expect((await stage.gateway.call("PATCH", "/v1/agents/clerk", { body })).status).toBe(200);
  };

  test("over REST is refused and not sent", async () => {
    const token = await issue({ agent: "clerk" });
    const { first } = await reserve();
    const second = stage.gateway.call("POST", "/v1/tools/up.paid/call", { token: token.secret });
    await turns();
    await more();
    await revoke(token);
    slow.open();
    expect(codeOf(await second)).toEqual(REFUSED);
    await first;
    expect(upstream.calls.map(({ name }) => name)).toEqual(["slow"]);
    expect(await entriesOf(token)).toEqual(["tool.call single denied invalid_token"]);
  });

  test("over MCP ends with its session, and is not sent", async () => {
    const token = await issue({ agent: "clerk" });
    const { first } = await reserve();
    const client = await connect(stage.gateway, { token: token.secret });
    const second = client.post(request("tools/call", { name: "up__paid", arguments: {} })).catch(() => null);
    await turns();
    await more();
    await revoke(token);
    slow.open();
    await Promise.all([first, second]);
    expect(upstream.calls.map(({ name }) => name)).toEqual(["slow"]);
    expect((await entriesOf(token)).filter((entry) => entry.includes("allowed"))).toEqual([]);
  });
});

describe("a change that waits for an upstream", () => {
  test("a connector whose document is still being read is not added", async () => {
    const token = await issue();
    const [asked, document] = [gate(), gate()];
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch() {
        asked.open();
        await document.opened;
        return Response.json({
          openapi: "3.1.0",
          info: { title: "Pets", version: "1" },
          paths: { "/pets": { get: { operationId: "list", responses: { "200": { description: "." } } } } },
        });
      },
    });
    const spec = `http://127.0.0.1:${server.port}/spec.json`;
    const body = { name: "pets", kind: "openapi", base_url: "http://127.0.0.1:9", spec };
    const made = stage.gateway.call("POST", "/v1/connectors", { token: token.secret, body });
    await asked.opened;
    await revoke(token);
    document.open();
    expect(codeOf(await made)).toEqual(REFUSED);
    const { data } = (await stage.gateway.call("GET", "/v1/connectors")).body;
    expect(data.map(({ name }: { name: string }) => name)).not.toContain("pets");
    expect(await entriesOf(token)).toEqual(["connector.authorise single denied invalid_token"]);
    await server.stop(true);
  });

  test("a refreshed connector's tools are not adopted", async () => {
    const token = await issue();
    upstream.list(["paid", "slow", "new"]);
    const open = upstream.holdLists();
    const heard = upstream.heard.filter((method) => method === "tools/list").length;
    const refresh = stage.gateway.call("POST", "/v1/connectors/up/refresh", { token: token.secret });
    await until(() => upstream.heard.filter((method) => method === "tools/list").length > heard);
    await revoke(token);
    open();
    expect(codeOf(await refresh)).toEqual(REFUSED);
    const { data } = (await stage.gateway.call("GET", "/v1/connectors")).body;
    const up = data.find(({ name }: { name: string }) => name === "up");
    expect(up.tools.map(({ name }: { name: string }) => name)).toEqual(["up.paid", "up.slow"]);
  });

  const documents = async () =>
    (await stage.gateway.call("GET", "/v1/vault/documents")).body.data.map(
      ({ title }: { title: string }) => title,
    );

  test("a document that is still being indexed is not written", async () => {
    const token = await issue();
    const vectors = gate();
    embeddings.script({ gate: vectors.opened });
    const body = { title: "Late", text: "The bittern booms.", scope: "support" };
    const written = stage.gateway.call("POST", "/v1/vault/documents", { token: token.secret, body });
    await embeddings.arrived(1);
    await revoke(token);
    vectors.open();
    expect(codeOf(await written)).toEqual(REFUSED);
    expect(await documents()).toEqual([]);
    expect(await entriesOf(token)).toEqual(["vault.write single denied invalid_token"]);
  });

  test("nor is one from an earlier call of vault.write", async () => {
    const token = await issue();
    const vectors = gate();
    embeddings.script({ gate: vectors.opened });
    const body = { arguments: { title: "Late", text: "The bittern booms.", scope: "support" } };
    const path = "/v1/tools/vault.write/call";
    const written = stage.gateway.call("POST", path, { token: token.secret, body });
    await embeddings.arrived(1);
    await revoke(token);
    vectors.open();
    expect((await written).body).toMatchObject({ status: "failed" });
    expect(await documents()).toEqual([]);
  });
});

describe("a task whose token has ended", () => {
  const task = (id: string) => stage.gateway.call("GET", `/v1/tasks/${id}`);

  test("calls no model once its turn in the queue comes", async () => {
    const token = await issue();
    const hold = held();
    stage.upstream.script("a", hold.script);
    const first = await dispatch(stage.gateway, { agent: "plain" });
    await hold.asked;
    const second = await dispatch(stage.gateway, { agent: "plain" }, { token: token.secret });
    await revoke(token);
    hold.open();
    expect((await ended(stage.gateway, first)).status).toBe("succeeded");
    expect(await ended(stage.gateway, second)).toMatchObject({
      status: "failed",
      error: {
        code: "interrupted",
        message: "The token that dispatched the task was revoked or has expired.",
      },
    });
    const entries = (await ledger(stage.gateway)).filter(
      ({ task, actor }) => task === second && actor === `token:${token.id}`,
    );
    expect(
      entries.map(({ action, phase, outcome, code }) => `${action} ${phase} ${outcome} ${code}`),
    ).toEqual([
      "task.dispatch intent allowed null",
      "model.call single denied invalid_token",
      "task.dispatch outcome failed interrupted",
    ]);
    expect(stage.upstream.requests).toHaveLength(1);
  });

  test("calls no tool that its model requests afterwards", async () => {
    const token = await issue();
    const hold = held({ toolCalls: [{ name: "up__paid", arguments: {} }] });
    stage.upstream.script("a", hold.script);
    const id = await dispatch(stage.gateway, { agent: "plain", tools: ["up.paid"] }, { token: token.secret });
    await hold.asked;
    await revoke(token);
    hold.open();
    expect(await ended(stage.gateway, id)).toMatchObject({
      status: "failed",
      error: { code: "interrupted" },
    });
    expect(upstream.calls).toEqual([]);
  });

  test("makes no call that a person approves afterwards", async () => {
    await stage.gateway.call("PATCH", "/v1/agents/plain", { body: { approvals: ["up.*"] } });
    const token = await issue({ agent: "plain" });
    const asked = await stage.gateway.call("POST", "/v1/tools/up.paid/call", { token: token.secret });
    expect(asked.status).toBe(202);
    let path = "";
    await until(async () => {
      const [call] = (await stage.gateway.call("GET", "/v1/approvals")).body.data;
      if (call) path = `/v1/tasks/${call.task}/approvals/${call.call_id}`;
      return path !== "";
    });
    await revoke(token);
    expect((await stage.gateway.call("POST", path, { body: { decision: "approve" } })).status).toBe(200);
    expect(await ended(stage.gateway, asked.body.task)).toMatchObject({
      status: "failed",
      error: { code: "interrupted" },
    });
    expect(upstream.calls).toEqual([]);
  });

  test("continues if the token was only rotated, or if the operator dispatched it", async () => {
    const token = await issue();
    const hold = held();
    stage.upstream.script("a", hold.script);
    const first = await dispatch(stage.gateway, { agent: "plain" }, { token: token.secret });
    await hold.asked;
    const second = await dispatch(stage.gateway, { agent: "plain" }, { token: token.secret });
    const operator = {
      token: stage.gateway.gateway.operatorSecret,
      headers: { "gatehouse-operator": "ada" },
    };
    const third = await dispatch(stage.gateway, { agent: "plain" }, operator);
    expect((await stage.gateway.call("POST", `/v1/tokens/${token.id}/rotate`)).status).toBe(200);
    hold.open();
    for (const id of [first, second, third]) await ended(stage.gateway, id);
    const all = await Promise.all([first, second, third].map(task));
    expect(all.map(({ body }) => body.status)).toEqual(["succeeded", "succeeded", "succeeded"]);
  });
});
