/** Model calls throughout the server's life: kills, stops, concurrency slots, and a store that cannot be written. */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { databasePath } from "../../src/store/directory.ts";
import { readFile, unsettled } from "../faults/support.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { serve, tempDir } from "../support/process.ts";
import { until } from "../support/until.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

/** Known before the server starts. */
const ADMIN = createSecret(systemRandom);

const ask = (model: string, stream: boolean) => ({
  method: "POST",
  body: JSON.stringify({ model, stream, messages: [{ role: "user", content: "hi there" }] }),
});

describe("a server that is killed during calls", () => {
  let directory: ReturnType<typeof tempDir>;
  beforeEach(() => {
    directory = tempDir();
  });
  afterEach(() => directory.remove());

  test("charges the reservation of each call once, at its next start", async () => {
    const upstream = startFakeModel();
    upstream.script("slow", { chunks: ["one ", "two "], hangAfter: 1 });
    const data = join(directory.path, "gatehouse-data");
    const yaml = `
providers: { up: { kind: openai-compatible, base_url: ${upstream.url} } }
models: { up/slow: { input: 1, output: 2 } }
tiers: { 1: { models: [up/slow] } }
`;
    const config = join(directory.path, "gatehouse.yaml");
    writeFileSync(config, yaml);
    const options = { cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: ADMIN } };
    const server = await serve(["--config", config], options);
    const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
    await fetch(`${server.url}/v1/workspace`, {
      ...{ method: "PATCH", headers },
      body: JSON.stringify({ budget: { credits_per_month: 1_000 } }),
    });
    const streams = await Promise.all(
      [1, 2, 3].map(() => fetch(`${server.url}/v1/chat/completions`, { headers, ...ask("up/slow", true) })),
    );
    for (const stream of streams) await stream.body?.getReader().read();
    await server.end("SIGKILL");
    await upstream.close();
    for (const _ of [1, 2]) await (await serve(["--config", config], options)).end("SIGTERM");
    const { entries } = readFile(databasePath(data));
    expect(unsettled(entries)).toEqual([]);
    const calls = entries.filter(({ action }) => action === "model.call");
    const outcomes = calls.filter(({ phase }) => phase === "outcome");
    expect(outcomes.map(({ outcome, code }) => [outcome, code])).toEqual(
      Array(3).fill(["failed", "interrupted"]),
    );
    for (const { credits, ref, detail } of outcomes) {
      // The statistics and the auditor's report count it by its API.
      expect(detail).toEqual({ dialect: "chat_completions" });
      expect(credits).toBe(calls.find(({ seq }) => seq === ref)?.detail?.reserved as number);
      expect(credits).toBeGreaterThan(0);
    }
  });

  test("ends when it is told to stop, without waiting for clients that stay", async () => {
    const upstream = startFakeModel();
    upstream.script("slow", { chunks: ["one ", "two "], hangAfter: 1 });
    const config = join(directory.path, "gatehouse.yaml");
    writeFileSync(
      config,
      `
providers: { up: { kind: openai-compatible, base_url: ${upstream.url} } }
tiers: { 1: { models: [up/slow] } }
drain_seconds: 1
`,
    );
    const server = await serve(["--config", config], {
      ...{ cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: ADMIN } },
    });
    const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
    const stream = await fetch(`${server.url}/v1/chat/completions`, { headers, ...ask("up/slow", true) });
    const reader = stream.body?.getReader();
    await reader?.read();
    await server.end("SIGTERM");
    await reader?.cancel().catch(() => {});
    await upstream.close();
    const { entries } = readFile(databasePath(join(directory.path, "gatehouse-data")));
    expect(unsettled(entries)).toEqual([]);
    const end = entries.find(({ action, phase }) => action === "model.call" && phase === "outcome");
    expect([end?.outcome, end?.code]).toEqual(["cancelled", "shutdown"]);
  });

  test("starts again, whatever the calls cost together, and a budget can be set then", async () => {
    const upstream = startFakeModel();
    upstream.script("cheap", { chunks: ["one"] });
    upstream.script("dear", { chunks: ["one ", "two "], hangAfter: 1 });
    const config = join(directory.path, "gatehouse.yaml");
    writeFileSync(
      config,
      `
providers: { up: { kind: openai-compatible, base_url: ${upstream.url} } }
models: { up/cheap: { input: 1, output: 1 }, up/dear: { input: 9007199254, output: 9007199254 } }
tiers: { 1: { models: [up/dear] } }
`,
    );
    const options = { cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: ADMIN } };
    const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };
    const budget = (url: string, credits: number) =>
      fetch(`${url}/v1/workspace`, {
        ...{ method: "PATCH", headers },
        body: JSON.stringify({ budget: { credits_per_month: credits } }),
      });
    let server = await serve(["--config", config], options);
    const cheap = await fetch(`${server.url}/v1/chat/completions`, { headers, ...ask("up/cheap", false) });
    expect(cheap.status).toBe(200);
    for (const _ of [1, 2]) {
      const answer = await fetch(`${server.url}/v1/chat/completions`, { headers, ...ask("up/dear", true) });
      await answer.body?.getReader().read();
    }
    expect((await budget(server.url, 1_000)).status).toBe(200);
    await server.end("SIGKILL");
    await upstream.close();
    server = await serve(["--config", config], options);
    expect((await budget(server.url, 2_000)).status).toBe(200);
    const answer = await fetch(`${server.url}/v1/workspace`, { headers });
    const { usage } = (await answer.json()) as { usage: { credits_this_month: number } };
    expect(usage.credits_this_month).toBe(Number.MAX_SAFE_INTEGER / 1_000_000);
    await server.end("SIGTERM");
    const { entries } = readFile(databasePath(join(directory.path, "gatehouse-data")));
    expect(unsettled(entries)).toEqual([]);
  });
});

describe("in one gateway", () => {
  let stage: DialectStage;
  beforeAll(async () => {
    stage = await openDialectStage({ settings: "limits: { queued_tasks: 1 }\n" });
  });
  afterAll(() => stage.stop());

  const post = (model: string, stream: boolean, signal?: AbortSignal) =>
    fetch(`${stage.gateway.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${stage.gateway.admin}`, "content-type": "application/json" },
      ...ask(model, stream),
      ...(signal ? { signal } : {}),
    });

  test("open calls take the concurrency slots: the next call waits, and is refused if the queue is full", async () => {
    const limits = { concurrent_tasks: 1, enforcement: "enforced" };
    await stage.gateway.call("PATCH", "/v1/workspace", { body: { limits } });
    stage.upstream.script("slow", { chunks: ["one ", "two "], hangAfter: 1 });
    stage.upstream.script("quick", { chunks: ["done"] });
    const leave = new AbortController();
    const first = await post("up/slow", true, leave.signal);
    await first.body?.getReader().read();
    const asked = stage.upstream.requests.length;
    const waiting = post("up/quick", false);
    await until(async () => {
      const { body } = await stage.gateway.call("GET", "/v1/workspace");
      return body.usage.tasks_queued === 1;
    });
    const refused = await post("up/quick", false);
    expect([refused.status, refused.headers.get("gatehouse-code")]).toEqual([429, "queue_full"]);
    expect(refused.headers.get("retry-after")).not.toBeNull();
    expect(stage.upstream.requests.length).toBe(asked);
    leave.abort();
    expect((await waiting).status).toBe(200);
    await stage.gateway.call("PATCH", "/v1/workspace", { body: { limits: { concurrent_tasks: 60 } } });
  });

  test("an answer whose outcome cannot be written is withheld, and recorded as soon as it can be", async () => {
    const held = Promise.withResolvers<void>();
    stage.upstream.script("held", { chunks: ["almost "], gate: held.promise });
    const stream = await post("up/held", true);
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await reader?.read())?.value ?? "";
    const file = new Database(databasePath(stage.gateway.dataDir));
    file.run("BEGIN IMMEDIATE");
    held.resolve();
    try {
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read())
        text += part.value;
    } finally {
      file.run("ROLLBACK");
      file.close();
    }
    expect(text).not.toContain("[DONE]");
    expect(text.trimEnd().split("\n\n").at(-1)).toContain('"code":"ledger_unavailable"');
    await until(async () => (await stage.entries()).at(-1)?.phase === "outcome");
    expect((await stage.entries()).at(-1)).toMatchObject({ outcome: "succeeded", model: "up/held" });
  });
});
