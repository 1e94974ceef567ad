/** Background responses and everything that may end them: restarts, kills, stops, tokens, age and a full queue. */

import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { createSecret } from "../../../src/access/secret.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { databasePath } from "../../../src/store/directory.ts";
import { readFile, unsettled } from "../../faults/support.ts";
import { FakeClock } from "../../support/clock.ts";
import { startFakeResponses } from "../../support/fake-responses.ts";
import { startGateway } from "../../support/gateway.ts";
import { ownConnection } from "../../support/own-connection.ts";
import { serve, tempDir } from "../../support/process.ts";
import { until } from "../../support/until.ts";
import {
  callItem,
  eventsOf,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "../responses-support.ts";
import type { LedgerRow } from "../support.ts";

const NEVER = new Promise(() => {});
const ANSWER = "Good evening to you";
const whole = () => responseOf([textItem(ANSWER)]);

let stage: ResponsesStage | undefined;
afterEach(async () => {
  await stage?.stop();
  stage = undefined;
});

async function dispatch({ post, clerk }: ResponsesStage, more: object = {}, token = clerk) {
  const body = { model: "up/first", input: "Good morning", background: true, ...more };
  const { response, bytes } = await post(JSON.stringify(body), { token });
  return { response, body: JSON.parse(bytes.toString()) };
}

/** The part of an answer that has arrived once it is long enough. */
async function firstPart(
  answer: Response,
  isEnough = (text: string) => text.includes("data: "),
): Promise<string> {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!isEnough(text)) {
    const part = await reader?.read();
    if (!part || part.done) break;
    text += part.value;
  }
  await reader?.cancel();
  return text;
}

async function inProgress({ ask }: ResponsesStage, id: string) {
  await until(async () => (await ask("GET", `/${id}`)).body.status === "in_progress");
}

describe("a response in progress", () => {
  test.each(["the agent", "the workspace"])(
    "ends when %s is stopped, and nothing runs after it",
    async (extent) => {
      stage = await openResponsesStage();
      stage.upstream.script("first", { events: eventsOf(whole()), gate: NEVER });
      const { body } = await dispatch(stage);
      await inProgress(stage, body.id);
      const path = extent === "the agent" ? "/v1/agents/clerk" : "/v1/workspace";
      expect((await stage.gateway.call("POST", `${path}/stop`)).status).toBe(200);
      const { body: ended } = await stage.ask("GET", `/${body.id}`);
      expect([ended.status, ended.error.code]).toEqual(["cancelled", "agent_stopped"]);
      expect((await dispatch(stage)).body.error.code).toBe("agent_stopped");
      expect((await stage.gateway.call("POST", `${path}/resume`)).status).toBe(200);
      expect((await stage.ask("GET", `/${body.id}`)).body.status).toBe("cancelled");
    },
  );

  test("that waits for a slot is not sent once its token is revoked", async () => {
    stage = await openResponsesStage();
    const { gateway, upstream } = stage;
    await gateway.call("PATCH", "/v1/workspace", {
      body: { limits: { concurrent_tasks: 1, enforcement: "enforced" } },
    });
    const gate = Promise.withResolvers<void>();
    upstream.script("first", { events: eventsOf(whole()), gate: gate.promise });
    const first = await dispatch(stage);
    await inProgress(stage, first.body.id);
    const issued = await gateway.call("POST", "/v1/tokens", {
      body: { name: "short", agent: "clerk", scopes: ["models:call"] },
    });
    const second = await dispatch(stage, {}, issued.body.secret ?? issued.body.token);
    expect([second.response.status, second.body.status]).toEqual([200, "queued"]);
    expect((await gateway.call("DELETE", `/v1/tokens/${issued.body.id}`)).status).toBe(204);
    const sent = upstream.requests.length;
    gate.resolve();
    const read = async () => (await stage?.ask("GET", `/${second.body.id}`))?.body;
    await until(async () => (await read()).status === "failed");
    expect((await read()).error.code).toBe("invalid_token");
    expect(upstream.requests.length).toBe(sent);
  });

  test.each([
    ["a text", () => textItem(ANSWER)],
    ["a call of a function", () => callItem("weather", { town: "Bern" })],
  ])("is started again after a restart in the middle of %s, and its stream continues", async (_, item) => {
    const { path: dataDir, remove } = tempDir();
    const answer = () => ({ events: eventsOf(responseOf([textItem("First"), item()])) });
    try {
      const before = await openResponsesStage({ dataDir });
      // In the middle of the second item.
      before.upstream.script("first", { ...answer(), hangAfter: 12 }, answer());
      const asked = { model: "up/first", input: "Good morning", background: true, stream: true } as const;
      const seen: number[] = [];
      let id = "";
      for await (const event of await before.client().responses.create(asked)) {
        seen.push(event.sequence_number);
        if (event.type === "response.created") id = event.response.id;
        if (event.type.endsWith(".delta") && "output_index" in event && event.output_index === 1) break;
      }
      await before.gateway.stop();
      const after = await startGateway({ dataDir });
      const client = new OpenAI({ apiKey: before.clerk, baseURL: `${after.url}/v1`, maxRetries: 0 });
      const rest = await client.responses.retrieve(id, { stream: true, starting_after: seen.at(-1) ?? 0 });
      const items: number[] = [];
      for await (const event of rest) {
        expect(event.sequence_number).toBeGreaterThan(seen.at(-1) ?? 0);
        seen.push(event.sequence_number);
        if (event.type === "response.output_item.added") items.push(event.output_index);
      }
      expect(items).toEqual([2, 3]);
      const stored = await client.responses.retrieve(id);
      expect([stored.status, stored.output.length]).toEqual(["completed", 2]);
      // Reading from the beginning, OpenAI's helper gets both attempts and ends with the final answer.
      const final = await client.responses.stream({ response_id: id }).finalResponse();
      expect(JSON.stringify(final.output)).toContain(String(stored.output[1]?.id));
      await after.stop();
      await before.upstream.close();
    } finally {
      remove();
    }
  });

  test("is in progress according to the ledger, and not to its row, which someone may change", async () => {
    const { path: dataDir, remove } = tempDir();
    try {
      const before = await openResponsesStage({ dataDir });
      before.upstream.script("first", { events: eventsOf(whole()) });
      const { body } = await dispatch(before);
      await until(async () => (await before.ask("GET", `/${body.id}`)).body.status === "completed");
      await before.gateway.stop();
      const file = new Database(databasePath(dataDir));
      file.run("UPDATE responses SET outcome_seq = 0, attempts = NULL");
      file.close();
      const after = await startGateway({ dataDir });
      const { body: listed } = await after.call("GET", "/v1/ledger?action=response.dispatch");
      const dispatched = listed.data.find(({ phase }: LedgerRow) => phase === "intent");
      expect((await after.call("GET", `/v1/responses/${body.id}`, { token: before.clerk })).status).toBe(404);
      const erased = await after.call("DELETE", `/v1/ledger/${dispatched.seq}/payload`);
      expect(erased.status).toBe(204);
      const texts = "SELECT COUNT(*) AS n FROM payloads WHERE instr(body, 'Good') > 0";
      expect(ownConnection(dataDir).query<{ n: number }, []>(texts).get()?.n).toBe(0);
      await after.stop();
      await before.upstream.close();
    } finally {
      remove();
    }
  });

  test("keeps its texts from expiring until it has ended", async () => {
    const { path: dataDir, remove } = tempDir();
    const begun = new FakeClock();
    const requests = () =>
      ownConnection(dataDir)
        .query<{ n: number }, []>("SELECT COUNT(*) AS n FROM payloads WHERE instr(body, 'Good morning') > 0")
        .get()?.n;
    try {
      const before = await openResponsesStage({ clock: begun, dataDir });
      const gate = Promise.withResolvers<void>();
      before.upstream.script("first", { events: eventsOf(whole()), gate: gate.promise });
      const { body } = await dispatch(before);
      await inProgress(before, body.id);
      await before.gateway.stop();
      const clock = new FakeClock(begun.now() + 400 * 86_400_000);
      const after = await startGateway({ clock, dataDir });
      await clock.advance(3_600_000);
      expect(requests()).toBe(1);
      gate.resolve();
      await until(async () => {
        const { body: now } = await after.call("GET", `/v1/responses/${body.id}`, { token: before.clerk });
        return now.status === "completed";
      });
      await until(async () => {
        await clock.advance(3_600_000);
        return requests() === 0;
      });
      await after.stop();
      await before.upstream.close();
    } finally {
      remove();
    }
  });
});

describe("a server that is killed", () => {
  const ADMIN = createSecret(systemRandom);
  const headers = { authorization: `Bearer ${ADMIN}`, "content-type": "application/json" };

  test("makes its responses again at the next start, at most three times, and settles each call", async () => {
    const directory = tempDir();
    const upstream = startFakeResponses("sk-upstream");
    try {
      upstream.script("slow", { events: eventsOf(whole()), hangAfter: 4 });
      upstream.script("quick", { events: eventsOf(whole()) });
      const config = join(directory.path, "gatehouse.yaml");
      writeFileSync(
        config,
        `
providers: { up: { kind: openai, base_url: ${upstream.url}, api_key: sk-upstream } }
models: { up/slow: { input: 1, output: 2 } }
tiers: { 1: { models: [up/slow, up/quick] } }
`,
      );
      const options = { cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: ADMIN } };
      let server = await serve(["--config", config], options);
      const make = async (model: string, more: object = {}) => {
        const body = JSON.stringify({ model, input: "x", background: true, ...more });
        const answer = await fetch(`${server.url}/v1/responses`, { method: "POST", headers, body });
        if (!("stream" in more)) return ((await answer.json()) as { id: string }).id;
        return /"id":"(resp_[^"]+)"/.exec(await firstPart(answer))?.[1] ?? "";
      };
      /** The first sequence numbers after the given one. */
      const numbersAfter = async (id: string, after: number, count: number): Promise<number[]> => {
        const path = `/v1/responses/${id}?stream=true&starting_after=${after}`;
        const answer = await fetch(server.url + path, { headers });
        const enough = (text: string) => [...text.matchAll(/"sequence_number":(\d+)/g)].length >= count;
        const text = await firstPart(answer, enough);
        return [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
      };
      const read = async (id: string) =>
        (await fetch(`${server.url}/v1/responses/${id}`, { headers })).json() as Promise<{
          status: string;
          error: { code: string } | null;
        }>;
      const quick = await make("up/quick");
      await until(async () => (await read(quick)).status === "completed");
      const slow = await make("up/slow", { stream: true });
      let seen = 0;
      for (let attempt = 1; attempt <= 3; attempt++) {
        await until(() => upstream.requests.filter(({ model }) => model === "slow").length === attempt);
        const numbers = await numbersAfter(slow, seen, 3);
        expect(numbers).toEqual([...new Set(numbers)].sort((first, second) => first - second));
        expect(numbers[0]).toBeGreaterThan(seen);
        seen = numbers.at(-1) ?? 0;
        await server.end("SIGKILL");
        server = await serve(["--config", config], options);
      }
      await until(async () => (await read(slow)).status === "failed");
      expect((await read(slow)).error?.code).toBe("interrupted");
      // The last events come after everything that was sent.
      expect((await numbersAfter(slow, seen, 2))[0]).toBeGreaterThan(seen);
      expect((await read(quick)).status).toBe("completed");
      await server.end("SIGTERM");
      const { entries } = readFile(databasePath(join(directory.path, "gatehouse-data")));
      expect(unsettled(entries)).toEqual([]);
      const ends = entries.filter(
        ({ action, phase }) => action === "response.dispatch" && phase === "outcome",
      );
      expect(ends.map(({ outcome, code }) => [outcome, code])).toEqual([
        ["succeeded", undefined],
        ["failed", "interrupted"],
      ]);
    } finally {
      await upstream.close();
      directory.remove();
    }
  });
});

test("a stop also ends responses that are being dispatched, and none runs after the resume", async () => {
  stage = await openResponsesStage();
  const { gateway, upstream, clerk, ask } = stage;
  upstream.script("first", { events: eventsOf(whole()), gate: NEVER });
  const body = { model: "up/first", input: "x", background: true };
  const sent = Array.from({ length: 60 }, () =>
    gateway.call("POST", "/v1/responses", { token: clerk, body }),
  );
  await Promise.race(sent);
  expect((await gateway.call("POST", "/v1/agents/clerk/stop")).status).toBe(200);
  const answers = await Promise.all(sent);
  const requests = upstream.requests.length;
  for (const { status, body: answer } of answers) {
    if (status === 409) expect(answer.error.code).toBe("agent_stopped");
    else expect((await ask("GET", `/${answer.id}`)).body.status).toBe("cancelled");
  }
  expect((await gateway.call("POST", "/v1/agents/clerk/resume")).status).toBe(200);
  for (const { status, body: answer } of answers) {
    if (status === 200) expect((await ask("GET", `/${answer.id}`)).body.status).toBe("cancelled");
  }
  expect(upstream.requests.length).toBe(requests);
});

test.each(["cancelled", "deleted"])(
  "a response that a drain leaves to the next start can be %s, and then does not run",
  async (how) => {
    const { path: dataDir, remove } = tempDir();
    try {
      const before = await openResponsesStage({ dataDir });
      const { gateway, upstream, clerk, ask } = before;
      const limits = { concurrent_tasks: 1, enforcement: "enforced" };
      await gateway.call("PATCH", "/v1/workspace", { body: { limits } });
      upstream.script("first", { events: eventsOf(whole()), gate: NEVER });
      const first = await dispatch(before);
      await inProgress(before, first.body.id);
      const { body } = await dispatch(before);
      const drained = gateway.gateway.drain();
      const ended =
        how === "cancelled" ? await ask("POST", `/${body.id}/cancel`) : await ask("DELETE", `/${body.id}`);
      expect(ended.status).toBe(200);
      await drained;
      await gateway.stop();
      const requests = upstream.requests.length;
      const after = await startGateway({ dataDir });
      const read = (id: string) => after.call("GET", `/v1/responses/${id}`, { token: clerk });
      await until(async () => upstream.requests.length === requests + 1);
      const { status, body: now } = await read(body.id);
      expect(how === "cancelled" ? now.status : status).toBe(how === "cancelled" ? "cancelled" : 404);
      await after.call("POST", `/v1/responses/${first.body.id}/cancel`, { token: clerk });
      expect(upstream.requests.length).toBe(requests + 1);
      await after.stop();
      await upstream.close();
    } finally {
      remove();
    }
  },
);

test("a response whose request was erased with a document can still be cancelled", async () => {
  stage = await openResponsesStage();
  const { gateway, upstream, ask } = stage;
  const document = { title: "Keys", text: "The key is in the kitchen.", scope: "house" };
  const { id } = (await gateway.call("POST", "/v1/vault/documents", { body: document })).body;
  upstream.script("first", { events: eventsOf(whole()), gate: NEVER });
  const { body } = await dispatch(stage, { input: `${id}: ${document.text}` });
  await until(() => upstream.requests.length > 0);
  const request = upstream.requests.at(-1);
  expect((await gateway.call("DELETE", `/v1/vault/documents/${id}?payloads=true`)).status).toBe(204);
  await until(async () => (await ask("GET", `/${body.id}`)).status === 404);
  expect((await ask("POST", `/${body.id}/cancel`)).body).toMatchObject({ id: body.id, status: "cancelled" });
  await until(() => request?.aborted === true);
});

test("a stop while the server drains ends one that waits, and the next start does not make it", async () => {
  const { path: dataDir, remove } = tempDir();
  try {
    const before = await openResponsesStage({ dataDir });
    const { gateway, upstream, clerk, ask } = before;
    const limits = { concurrent_tasks: 1, enforcement: "enforced" };
    await gateway.call("PATCH", "/v1/workspace", { body: { limits } });
    upstream.script("first", { events: eventsOf(whole()), gate: NEVER });
    const first = await dispatch(before);
    await inProgress(before, first.body.id);
    const { body } = await dispatch(before);
    const drained = gateway.gateway.drain();
    for (const path of ["stop", "resume"]) {
      expect((await gateway.call("POST", `/v1/agents/clerk/${path}`)).status).toBe(200);
    }
    expect((await ask("GET", `/${body.id}`)).body.status).toBe("cancelled");
    await drained;
    await gateway.stop();
    const requests = upstream.requests.length;
    const after = await startGateway({ dataDir });
    for (const { id } of [first.body, body]) {
      const { body: now } = await after.call("GET", `/v1/responses/${id}`, { token: clerk });
      expect([now.status, now.error.code]).toEqual(["cancelled", "agent_stopped"]);
    }
    expect(upstream.requests.length).toBe(requests);
    await after.stop();
    await upstream.close();
  } finally {
    remove();
  }
});

test("one whose intent cannot be written is not sent, and is made once it can", async () => {
  stage = await openResponsesStage();
  const { gateway, upstream, ask } = stage;
  upstream.script("first", { events: eventsOf(whole()) });
  const file = ownConnection(gateway.dataDir);
  // The smaller writes before it succeed, as on a disk that is nearly full.
  file.run(`CREATE TEMP TRIGGER full BEFORE INSERT ON main.ledger
    WHEN NEW.bytes LIKE '{"action":"model.call"%"phase":"intent"%' BEGIN SELECT RAISE(ABORT, 'full'); END`);
  const { body } = await dispatch(stage);
  await inProgress(stage, body.id);
  // More often than a response may be attempted.
  await Bun.sleep(2_500);
  // A read that is recorded in one transaction with the refused intent fails with it, and succeeds when tried again.
  await until(async () => (await ask("GET", `/${body.id}`)).body.status === "in_progress");
  expect(upstream.requests.length).toBe(0);
  file.run("DROP TRIGGER full");
  await until(async () => (await ask("GET", `/${body.id}`)).body.status === "completed");
  expect(upstream.requests.length).toBe(1);
  // Failed attempts to write the intent leave no entry.
  const { body: listed } = await gateway.call("GET", "/v1/ledger?action=model.call");
  expect(listed.data.map(({ phase }: LedgerRow) => phase).sort()).toEqual(["intent", "outcome"]);
});

test("each dispatch counts as a request, also if its events are streamed", async () => {
  stage = await openResponsesStage();
  const { gateway, upstream, post, clerk: token } = stage;
  upstream.script("first", { events: eventsOf(whole()) });
  const limits = { requests_per_minute: 3, enforcement: "enforced" };
  await gateway.call("PATCH", "/v1/workspace", { body: { limits } });
  const body = JSON.stringify({ model: "up/first", input: "x", background: true, stream: true });
  const statuses: number[] = [];
  for (let count = 0; count < 4; count++) statuses.push((await post(body, { token })).response.status);
  expect(statuses.at(-1)).toBe(429);
});

test("the queue has the same limit as for tasks, and budgets are checked before anything is queued", async () => {
  const limits = "limits: { queued_tasks: 1, concurrent_tasks: 1, enforcement: enforced }";
  stage = await openResponsesStage({ settings: limits });
  const { upstream, gateway } = stage;
  upstream.script("first", { events: eventsOf(whole()), gate: NEVER });
  const first = await dispatch(stage);
  await inProgress(stage, first.body.id);
  const second = await dispatch(stage);
  expect(second.body.status).toBe("queued");
  const third = await dispatch(stage);
  expect([third.response.status, third.body.error.code]).toEqual([429, "queue_full"]);
  await gateway.call("PATCH", "/v1/workspace", { body: { budget: { credits_per_month: 0 } } });
  await stage.ask("POST", `/${first.body.id}/cancel`);
  await inProgress(stage, second.body.id);
  const priced = await dispatch(stage, { model: "up/priced" });
  expect([priced.response.status, priced.body.error.code]).toEqual([402, "credits_exhausted"]);
});
