/** Counting tokens before a call: by the provider if its API can, otherwise by an estimate. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { databasePath } from "../../src/store/directory.ts";
import { readFile, unsettled } from "../faults/support.ts";
import { startFakeMessages } from "../support/fake-messages.ts";
import { serve, tempDir } from "../support/process.ts";
import { until } from "../support/until.ts";
import { type MessagesStage, openMessagesStage, USER } from "./messages-support.ts";

let stage: MessagesStage;
beforeAll(async () => {
  stage = await openMessagesStage();
});
afterAll(() => stage.stop());

const PATH = "/v1/messages/count_tokens";
const asked = (model: string) => JSON.stringify({ unknown: 1.0, model, messages: USER });

test("Anthropic's provider counts; an intent and an outcome are in the ledger, and nothing is charged", async () => {
  stage.upstream.script("priced", { message: { input_tokens: 2_095 } });
  const before = (await stage.gateway.call("GET", "/v1/usage")).body.totals;
  const { data, response } = await stage
    .client(stage.gateway.admin)
    .messages.countTokens({ model: "claude/priced", messages: USER })
    .withResponse();
  expect(data.input_tokens).toBe(2_095);
  expect(stage.upstream.requests.at(-1)?.path).toBe(PATH);
  expect(response.headers.get("gatehouse-model")).toBe("claude/priced");
  expect(response.headers.get("gatehouse-usage")).toBeNull();
  const [intent, outcome, ...more] = await stage.entriesOf(response, "model.count");
  expect(intent).toMatchObject({ phase: "intent", outcome: "allowed", model: "claude/priced" });
  expect(String(intent?.seq)).toBe(response.headers.get("gatehouse-ledger") ?? "");
  expect(outcome).toMatchObject({
    ...{ phase: "outcome", ref: intent?.seq, outcome: "succeeded", credits: null },
    detail: { dialect: "messages", counted_tokens: 2_095 },
  });
  expect(more).toEqual([]);
  expect(JSON.parse(stage.text(intent, "input") ?? "")).toEqual({ model: "claude/priced", messages: USER });
  expect(stage.text(outcome, "output")).toBe('{"input_tokens":2095}');
  // It is counted under its own name, and not as a model call.
  const requests = before.token_counts.requests + 1;
  const totals = async () => (await stage.gateway.call("GET", "/v1/usage")).body.totals;
  await until(async () => (await totals()).token_counts.requests === requests);
  expect(await totals()).toEqual({ ...before, token_counts: { ...before.token_counts, requests } });
});

test("its bytes are passed on except for the model's name, with version, beta and ?beta=true", async () => {
  stage.upstream.script("any", { message: { input_tokens: 1 } });
  const headers = { "anthropic-beta": "token-counting-2024-11-01", "x-app": "cli" };
  const { response } = await stage.post(asked("claude/any"), { path: `${PATH}?beta=true`, headers });
  expect(response.status).toBe(200);
  const seen = stage.upstream.requests.at(-1);
  expect(seen?.bytes.toString()).toBe(asked("any"));
  expect(seen?.path).toBe(`${PATH}?beta=true`);
  expect(seen?.headers.get("anthropic-beta")).toBe("token-counting-2024-11-01");
  expect(seen?.headers.get("x-app")).toBeNull();
});

test("for another kind of provider the count is estimated, and nothing is sent", async () => {
  const before = stage.upstream.requests.length;
  const { response, bytes } = await stage.post(asked("tier:3"), { path: PATH });
  expect(response.status).toBe(200);
  expect(response.headers.get("gatehouse-usage")).toBe("estimated");
  // "user" and "Good morning", and the model's name: 22 bytes.
  expect(JSON.parse(bytes.toString())).toEqual({ input_tokens: 6 });
  expect(stage.upstream.requests).toHaveLength(before);
  expect(await stage.entriesOf(response, "model.count")).toMatchObject([
    { phase: "single", outcome: "succeeded", tier: 3 },
  ]);
  const forbidden = await stage.post(asked("up/never-1"), { path: PATH });
  expect(forbidden.response.headers.get("gatehouse-code")).toBe("model_forbidden");
});

test("a provider that fails leads to the next model of the tier, and then to its error", async () => {
  stage.upstream.script("first", { status: 529 });
  stage.upstream.script("second", { message: { input_tokens: 3 } }, { status: 429 });
  const counted = await stage.post(asked("tier:1"), { path: PATH });
  expect(counted.response.headers.get("gatehouse-model")).toBe("claude/second");
  expect((await stage.entriesOf(counted.response, "model.count")).map(({ code }) => code)).toEqual([
    ...[null, "http_529", null, null],
  ]);
  const busy = await stage.post(asked("tier:1"), { path: PATH });
  expect([busy.response.status, JSON.parse(busy.bytes.toString()).error.type]).toEqual([
    429,
    "rate_limit_error",
  ]);
  const error = { type: "invalid_request_error", message: "messages: field required" };
  stage.upstream.script("first", { status: 400, error });
  const refused = await stage.post(asked("tier:1"), { path: PATH });
  expect(refused.response.headers.get("gatehouse-code")).toBe("provider_refused");
  expect(JSON.parse(refused.bytes.toString()).error.message).toContain("messages: field required");
});

test("a stop ends the request, and so does a client that leaves", async () => {
  await stage.gateway.agent("counter");
  const token = await stage.gateway.token({ agent: "counter" });
  stage.upstream.script("any", { parts: [Buffer.from("{"), Buffer.from("}")], hangAfter: 1 });
  const count = stage.upstream.requests.length;
  const stopped = stage.post(asked("claude/any"), { path: PATH, token });
  await until(() => stage.upstream.requests.length > count);
  await stage.gateway.call("POST", "/v1/agents/counter/stop");
  const { response } = await stopped;
  expect([response.status, response.headers.get("gatehouse-code")]).toEqual([409, "agent_stopped"]);
  expect((await stage.entriesOf(response, "model.count"))[1]).toMatchObject({
    ...{ outcome: "cancelled", code: "agent_stopped" },
  });
  const leave = new AbortController();
  const left = stage.post(asked("claude/any"), { path: PATH, signal: leave.signal });
  await until(() => stage.upstream.requests.length > count + 1);
  leave.abort();
  await left.catch(() => {});
  await until(() => stage.upstream.requests.at(-1)?.aborted === true);
  await until(async () => {
    const { body } = await stage.gateway.call("GET", "/v1/ledger?action=model.count&order=desc&limit=1");
    return body.data[0].outcome === "cancelled" && body.data[0].agent === "clerk";
  });
});

test("a count that a killed server leaves open is reported by the next start, and is free", async () => {
  const admin = createSecret(systemRandom);
  const upstream = startFakeMessages("sk-upstream");
  upstream.script("slow", { parts: [Buffer.from("{"), Buffer.from("}")], hangAfter: 1 });
  const directory = tempDir();
  try {
    const config = join(directory.path, "gatehouse.yaml");
    const provider = `{ kind: anthropic, base_url: "${upstream.url}", api_key: sk-upstream }`;
    const models = "models: { claude/slow: { input: 1, output: 2 } }";
    writeFileSync(
      config,
      `providers: { claude: ${provider} }\n${models}\ntiers: { 1: { models: [claude/slow] } }\n`,
    );
    const options = { cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: admin } };
    const server = await serve(["--config", config], options);
    const headers = { authorization: `Bearer ${admin}` };
    const open = fetch(server.url + PATH, { method: "POST", headers, body: asked("claude/slow") });
    open.catch(() => {});
    await until(() => upstream.requests.length > 0);
    await server.end("SIGKILL");
    await upstream.close();
    for (const _ of [1, 2]) await (await serve(["--config", config], options)).end("SIGTERM");
    const { entries } = readFile(databasePath(join(directory.path, "gatehouse-data")));
    expect(unsettled(entries)).toEqual([]);
    const counts = entries.filter(({ action }) => action === "model.count");
    expect(counts.map(({ phase, outcome, code, credits }) => [phase, outcome, code, credits])).toEqual([
      ["intent", "allowed", undefined, undefined],
      ["outcome", "failed", "interrupted", undefined],
    ]);
    expect(counts[1]?.detail).toEqual({ dialect: "messages" });
  } finally {
    directory.remove();
  }
});
