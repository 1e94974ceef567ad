/** The erasure of responses' texts: which entries and stored events belong to a response, whatever became of its row. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../../src/access/secret.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { FakeClock } from "../../support/clock.ts";
import { startFakeResponses } from "../../support/fake-responses.ts";
import { startGateway, type TestGateway } from "../../support/gateway.ts";
import { ownConnection } from "../../support/own-connection.ts";
import { serve, tempDir } from "../../support/process.ts";
import { until } from "../../support/until.ts";
import { leftovers } from "../../vault/files-support.ts";
import {
  eventsOf,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "../responses-support.ts";
import type { LedgerRow } from "../support.ts";

const TEXT = "The key is under the obnubilated stone.";
const AS_CLERK = { "gatehouse-agent": "clerk" };

let stage: ResponsesStage;
const stops: (() => unknown)[] = [];
beforeEach(async () => {
  stage = await openResponsesStage();
  stops.push(stage.stop);
});
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function keys({ call }: Pick<TestGateway, "call"> = stage.gateway): Promise<string> {
  const body = { title: "Keys", text: TEXT, scope: "house" };
  return (await call("POST", "/v1/vault/documents", { body })).body.id;
}
const quoteOf = (document: string) => `I read ${JSON.stringify({ document_id: document, text: TEXT })}`;

async function deleteWithQuotes(
  id: string,
  { call }: Pick<TestGateway, "call"> = stage.gateway,
): Promise<void> {
  expect((await call("DELETE", `/v1/vault/documents/${id}?payloads=true`)).status).toBe(204);
}

/** Posts a request, and returns its id and the seq of its entry. A stream is read up to `mark`. */
async function dispatch(
  request: object = {},
  mark = "response.created",
): Promise<{ id: string; seq: number }> {
  const body = JSON.stringify({ model: "up/first", input: "What do my notes say?", ...request });
  const response = await fetch(`${stage.gateway.url}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${stage.clerk}` },
    body,
  });
  expect(response.status).toBe(200);
  const text = await readUpTo(response, mark);
  return {
    id: /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? "",
    seq: Number(response.headers.get("gatehouse-ledger")),
  };
}

async function readUpTo(response: Response, mark: string): Promise<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes(mark)) {
    const part = await reader?.read();
    if (!part || part.done) break;
    text += part.value;
  }
  await reader?.cancel();
  return text;
}

const IN_BACKGROUND = { background: true, stream: true };
const statusOf = async (id: string) => (await stage.ask("GET", `/${id}`)).body.status;
const ended = (id: string) => until(async () => !["queued", "in_progress"].includes(await statusOf(id)));
const notes = ({ dataDir }: Pick<TestGateway, "dataDir"> = stage.gateway) =>
  ownConnection(dataDir).query("SELECT key FROM meta WHERE key LIKE 'quoted/%'").all();
const left = (needle: string = TEXT) => leftovers(stage.gateway.dataDir, { needle });

/** The entries of model calls with an answer. */
async function answers(): Promise<LedgerRow[]> {
  const { body } = await stage.gateway.call("GET", "/v1/ledger?action=model.call&limit=200");
  return body.data.filter((entry: { output_hash?: string | null }) => typeof entry.output_hash === "string");
}

/** Refuses the store's writes of long texts, as a disk that is nearly full does. */
function fill(): () => void {
  const file = ownConnection(stage.gateway.dataDir);
  file.run(`CREATE TEMP TRIGGER full BEFORE INSERT ON main.payloads WHEN length(NEW.body) > 50000
    BEGIN SELECT RAISE(ABORT, 'full'); END`);
  return () => void file.run("DROP TRIGGER full");
}
const LONG = "z".repeat(100_000);

describe.each([
  ["a response", {}],
  ["a background response", { background: true }],
  ["a streamed background response", IN_BACKGROUND],
])("the request of %s that its agent has deleted", (_, request) => {
  test("is erased with its answer", async () => {
    const whole = responseOf([textItem(TEXT)]);
    stage.upstream.script(
      "first",
      "background" in request ? { events: eventsOf(whole) } : { response: whole },
    );
    const { id, seq } = await dispatch(request);
    await ended(id);
    expect((await stage.ask("DELETE", `/${id}`)).status).toBe(200);
    // An agent cannot erase the evidence of its own actions.
    expect(left()).not.toEqual([]);
    expect((await stage.gateway.call("DELETE", `/v1/ledger/${seq}/payload`)).status).toBe(204);
    expect(left()).toEqual([]);
  });
});

test("the answers of all attempts are erased with the request, although another request came in between", async () => {
  const { upstream, gateway } = stage;
  upstream.script("first", { status: 500 });
  upstream.script("next", { response: responseOf([textItem(TEXT)]) });
  const { id } = await dispatch({ model: "tier:1" });
  const { body } = await gateway.call("GET", "/v1/ledger?action=model.call&limit=1&order=asc");
  upstream.script("first", { response: responseOf([textItem("kept words")]) });
  await dispatch();
  expect((await stage.ask("DELETE", `/${id}`)).status).toBe(200);
  const erased = await gateway.call("DELETE", `/v1/ledger/${body.data[0].seq}/payload`);
  expect(erased.status).toBe(204);
  expect(left()).toEqual([]);
  expect(left("kept words")).not.toEqual([]);
});

test("an answer that is erased by itself leaves no stored events, and the response is gone", async () => {
  stage.upstream.script("first", { events: eventsOf(responseOf([textItem(TEXT)])) });
  const { id } = await dispatch(IN_BACKGROUND);
  await ended(id);
  const [answer] = await answers();
  expect((await stage.gateway.call("DELETE", `/v1/ledger/${answer?.seq}/payload`)).status).toBe(204);
  expect(left()).toEqual([]);
  for (const path of [`/${id}`, `/${id}?stream=true`])
    expect((await stage.ask("GET", path)).status).toBe(404);
});

describe("the texts of a request cannot be erased", () => {
  test("while its answer is in progress", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stage.upstream.script("first", { events: eventsOf(responseOf([textItem(TEXT)])), gate: promise });
    const begun = Promise.withResolvers<void>();
    const body = JSON.stringify({ model: "up/first", input: "x", stream: true });
    const answer = stage.post(body, { begun: begun.resolve });
    await begun.promise;
    const { body: listed } = await stage.gateway.call("GET", "/v1/ledger?action=model.call");
    const erase = () => stage.gateway.call("DELETE", `/v1/ledger/${listed.data[0].seq}/payload`);
    const refused = await erase();
    expect([refused.status, refused.body.code]).toEqual([409, "task_unfinished"]);
    resolve();
    await answer;
    await until(async () => (await erase()).status === 204);
    expect(left()).toEqual([]);
  });

  test("while the store has refused its answer, which is recorded later", async () => {
    const text = `${TEXT}${LONG}`;
    stage.upstream.script("first", { events: eventsOf(responseOf([textItem(text)])) });
    const free = fill();
    const { id } = await dispatch({ background: true });
    await ended(id);
    expect(await statusOf(id)).toBe("failed");
    const erase = () => stage.ask("DELETE", `/${id}`, stage.gateway.admin, AS_CLERK);
    const refused = await erase();
    expect([refused.status, refused.body.error.code]).toEqual([409, "task_unfinished"]);
    free();
    await until(async () => (await answers()).length > 0);
    expect((await erase()).status).toBe(200);
    expect(left()).toEqual([]);
    // SQLite may have moved a part of the long text within a page before. Only the rewrite that follows removes that.
    await until(() => left("zzz").length === 0);
  });
});

describe("a document is deleted that only the answer of a background response quotes", () => {
  test.each(["cancelled", "cut off", "ended"])("after it was %s", async (how) => {
    const document = await keys();
    const events = eventsOf(responseOf([textItem(quoteOf(document))]));
    const beforeEnd = events.length - 1;
    const breaks = { cancelled: { hangAfter: beforeEnd }, "cut off": { cutAfter: beforeEnd }, ended: {} };
    stage.upstream.script("first", { events, ...breaks[how as keyof typeof breaks] });
    const { id } = await dispatch(IN_BACKGROUND, "response.output_item.done");
    if (how === "cancelled") expect((await stage.ask("POST", `/${id}/cancel`)).status).toBe(200);
    await ended(id);
    await deleteWithQuotes(document);
    expect(left()).toEqual([]);
  });

  test.each(["before", "after"])("%s there is room for its answer", async (when) => {
    const document = await keys();
    const item = textItem(`${quoteOf(document)}${LONG}`);
    stage.upstream.script("first", { events: eventsOf(responseOf([item])) });
    const free = fill();
    const { id } = await dispatch(IN_BACKGROUND);
    await ended(id);
    if (when === "before") await deleteWithQuotes(document);
    free();
    await until(async () => (await answers()).length > 0);
    if (when === "after") await deleteWithQuotes(document);
    await until(() => notes().length === 0);
    expect(left()).toEqual([]);
  });
});

describe("a restart", () => {
  /** The items of two attempts, of which the first has its text in its first event and is interrupted. */
  async function interrupted(
    text: string,
    second: object,
  ): Promise<{ id: string; again: () => Promise<TestGateway> }> {
    const item = textItem(text) as Record<string, unknown>;
    const { gateway, upstream } = stage;
    const first = [
      { type: "response.created", response: { ...responseOf([]), status: "in_progress" } },
      { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress" } },
      { type: "response.in_progress" },
    ];
    upstream.script("first", { events: first, hangAfter: 2 }, second);
    const { id } = await dispatch(IN_BACKGROUND, "response.output_item.added");
    return {
      id,
      async again() {
        await gateway.gateway.stop();
        const started = await startGateway({ dataDir: gateway.dataDir });
        stops.push(() => started.stop());
        return started;
      },
    };
  }
  const hasEnded = async ({ call }: TestGateway, id: string) => {
    const read = async () => (await call("GET", `/v1/responses/${id}`, { token: stage.clerk })).body.status;
    await until(async () => !["queued", "in_progress"].includes(await read()));
  };

  test("leaves the quotes of an earlier attempt, which are erased although the next one has begun", async () => {
    const document = await keys();
    const gate = Promise.withResolvers<void>();
    const events = eventsOf(responseOf([textItem("Nothing.")]));
    const { id, again } = await interrupted(quoteOf(document), { events, gate: gate.promise });
    const after = await again();
    await until(() => stage.upstream.requests.length === 2);
    await deleteWithQuotes(document, after);
    gate.resolve();
    await hasEnded(after, id);
    await until(() => notes(after).length === 0);
    // The next attempt repeats the unfinished items of the earlier one as its first events.
    expect(left()).toEqual([]);
    expect((await after.call("GET", `/v1/responses/${id}`, { token: stage.clerk })).body.status).toBe(
      "completed",
    );
  });

  test("begins another attempt after the deletion, and what it quotes is erased too", async () => {
    const document = await keys();
    const events = eventsOf(responseOf([textItem(quoteOf(document))]));
    const { id, again } = await interrupted("Let me see.", { events });
    await deleteWithQuotes(document);
    const after = await again();
    await hasEnded(after, id);
    await until(() => notes(after).length === 0);
    expect(left()).toEqual([]);
  });
});

test("the quotes of an attempt that was killed are erased, although only its events have them", async () => {
  const admin = createSecret(systemRandom);
  const directory = tempDir();
  const upstream = startFakeResponses("sk-upstream");
  stops.push(() => directory.remove(), upstream.close);
  const config = join(directory.path, "gatehouse.yaml");
  writeFileSync(
    config,
    `
providers: { up: { kind: openai, base_url: ${upstream.url}, api_key: sk-upstream } }
tiers: { 1: { models: [up/first] } }
`,
  );
  const options = { cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: admin } };
  const headers = { authorization: `Bearer ${admin}`, "content-type": "application/json" };
  let server = await serve(["--config", config], options);
  const call = async (method: string, path: string, body?: object) => {
    const sent = body ? { body: JSON.stringify(body) } : {};
    const answer = await fetch(`${server.url}${path}`, { method, headers, ...sent });
    return { status: answer.status, text: await answer.text() };
  };
  const made = await call("POST", "/v1/vault/documents", { title: "Keys", text: TEXT, scope: "house" });
  const document = (JSON.parse(made.text) as { id: string }).id;
  // The document's id is divided between two events, one of them almost as long as possible, and no later one repeats it.
  const at = { item_id: "msg_1", output_index: 0, content_index: 0 };
  const long = "a\n".repeat(1_300_000);
  const deltas = [`${long}${document.slice(0, 9)}`, `${document.slice(9)}: ${TEXT}`];
  const added = (item: object, index: number) => ({
    type: "response.output_item.added",
    output_index: index,
    item,
  });
  const item = (id: string) => ({ ...textItem("", id), status: "in_progress", content: [] });
  const first = [
    { type: "response.created", response: { ...responseOf([]), status: "in_progress" } },
    added(item("msg_1"), 0),
    ...deltas.map((delta) => ({ type: "response.output_text.delta", ...at, delta })),
    // Events are stored with the next item.
    added(item("msg_2"), 1),
    { type: "response.in_progress" },
  ];
  const second = { events: eventsOf(responseOf([textItem("Nothing.")])) };
  upstream.script("first", { events: first, hangAfter: 5 }, second);
  const request = { model: "up/first", input: "What do my notes say?", ...IN_BACKGROUND };
  const answer = await fetch(`${server.url}/v1/responses`, {
    method: "POST",
    headers,
    body: JSON.stringify(request),
  });
  const id = /"id":"(resp_[^"]+)"/.exec(await readUpTo(answer, "msg_2"))?.[1] ?? "";
  await server.end("SIGKILL");
  server = await serve(["--config", config], options);
  await until(async () => (await call("GET", `/v1/responses/${id}`)).text.includes('"completed"'));
  expect((await call("GET", `/v1/responses/${id}?stream=true`)).text).toContain(TEXT);
  expect((await call("DELETE", `/v1/vault/documents/${document}?payloads=true`)).status).toBe(204);
  expect((await call("GET", `/v1/responses/${id}?stream=true`)).text).not.toContain(TEXT);
  expect((await call("GET", `/v1/responses/${id}`)).text).toContain('"completed"');
  await server.end("SIGTERM");
  expect(leftovers(directory.path, { TEXT })).toEqual([]);
});

test("the events of other responses stay", async () => {
  const document = await keys();
  stage.upstream.script("first", { events: eventsOf(responseOf([textItem("kept words")])) });
  const { id } = await dispatch(IN_BACKGROUND);
  await ended(id);
  const read = async () =>
    (
      await fetch(`${stage.gateway.url}/v1/responses/${id}?stream=true`, {
        headers: { authorization: `Bearer ${stage.clerk}` },
      })
    ).text();
  const before = await read();
  await deleteWithQuotes(document);
  expect(await read()).toBe(before);
});

describe("events without a row", () => {
  const blocks = () => ownConnection(stage.gateway.dataDir).query("SELECT * FROM response_events").all();

  test("are not stored for a response that was deleted before its end could be written", async () => {
    const events = eventsOf(responseOf([textItem(TEXT)]));
    stage.upstream.script("first", { events, hangAfter: events.length - 1 });
    const { id } = await dispatch(IN_BACKGROUND, "response.output_item.done");
    const file = ownConnection(stage.gateway.dataDir);
    file.run(`CREATE TEMP TRIGGER full BEFORE INSERT ON main.ledger
      WHEN NEW.bytes LIKE '{"action":"response.dispatch"%"phase":"outcome"%'
      BEGIN SELECT RAISE(ABORT, 'full'); END`);
    expect((await stage.ask("DELETE", `/${id}`)).status).toBe(200);
    expect(blocks()).toEqual([]);
    file.run("DROP TRIGGER full");
    await until(async () => {
      const { body } = await stage.gateway.call("GET", "/v1/ledger?action=response.dispatch");
      return body.data.some(({ phase }: LedgerRow) => phase === "outcome");
    });
    expect(blocks()).toEqual([]);
  });

  test("expire with their requests", async () => {
    stage.upstream.script("first", { events: eventsOf(responseOf([textItem(TEXT)])) });
    const { id } = await dispatch(IN_BACKGROUND);
    await ended(id);
    ownConnection(stage.gateway.dataDir).run("DELETE FROM responses");
    expect(blocks()).not.toEqual([]);
    await stage.gateway.gateway.stop();
    const clock = new FakeClock(Date.now() + 400 * 86_400_000);
    const later = await startGateway({ dataDir: stage.gateway.dataDir, clock });
    stops.push(() => later.stop());
    await until(() => blocks().length === 0);
  });
});
