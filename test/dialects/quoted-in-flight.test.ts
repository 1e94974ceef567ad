/** Clients' calls that quote a document and are in flight when the document and its quotes are deleted. */
import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { databasePath } from "../../src/store/directory.ts";
import { readFile, unsettled } from "../faults/support.ts";
import { addConnector, connect } from "../mcp/support.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { serve, tempDir } from "../support/process.ts";
import { startScriptedMcp, text } from "../support/scripted-mcp.ts";
import { gate, type held, held as heldScript, ledger, until } from "../tasks/support.ts";
import { leftovers } from "../vault/files-support.ts";
import { eventsOf, openResponsesStage, responseOf, textItem } from "./responses-support.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

const TEXT = "The spare key hangs in the obnubilated boathouse.";
const ANSWER = "it hangs there, at the obnubilated lake";
const NEEDLES = { TEXT, ANSWER };
const KEPT = "words about something else entirely";

let client = new AbortController();
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  // A stopping gateway waits for calls whose clients are still connected.
  client.abort();
  client = new AbortController();
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function openStage(): Promise<DialectStage> {
  const stage = await openDialectStage();
  stops.push(() => stage.stop());
  return stage;
}

async function keys({ call }: Pick<TestGateway, "call">): Promise<string> {
  const body = { title: "Keys", text: TEXT, scope: "house" };
  return (await call("POST", "/v1/vault/documents", { body })).body.id;
}
async function deleteWithQuotes({ call }: Pick<TestGateway, "call">, id: string): Promise<void> {
  expect((await call("DELETE", `/v1/vault/documents/${id}?payloads=true`)).status).toBe(204);
}
const question = (id: string) => `Where is the key? ${JSON.stringify({ document_id: id, text: TEXT })}`;

/** Requests a stream from a model, and reads all of it. */
async function ask({ gateway }: DialectStage, content: string, model = "up/first", more: object = {}) {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.admin}`, "content-type": "application/json" },
    body: JSON.stringify({ model, stream: true, messages: [{ role: "user", content }], ...more }),
    signal: client.signal,
  });
  return response.text();
}

const erasures = async (gateway: TestGateway) =>
  (await ledger(gateway)).filter(({ action }) => action === "payload.erase");
const notes = (gateway: TestGateway) =>
  ownConnection(gateway.dataDir).query("SELECT key FROM meta WHERE key LIKE 'quoted/%'").all();

/** A call in flight with a prompt that quotes a document. The document has been deleted with its quotes. */
async function deletedInFlight(): Promise<{
  readonly stage: DialectStage;
  readonly hold: ReturnType<typeof held>;
  readonly answer: ReturnType<typeof ask>;
}> {
  const stage = await openStage();
  const id = await keys(stage.gateway);
  const hold = heldScript({ chunks: [ANSWER] });
  stage.upstream.script("first", hold.script);
  const answer = ask(stage, question(id));
  await hold.asked;
  await deleteWithQuotes(stage.gateway, id);
  return { stage, hold, answer };
}

/** Stops a gateway and starts it again. */
async function restarted({ gateway }: DialectStage): Promise<TestGateway> {
  await gateway.gateway.stop();
  const again = await startGateway({ dataDir: gateway.dataDir });
  stops.push(() => again.stop());
  return again;
}

test("their answers are erased when they end, the ledger records that this is pending, and other answers stay", async () => {
  const stage = await openStage();
  const { gateway, upstream } = stage;
  const id = await keys(gateway);
  const [hold, other] = [heldScript({ chunks: [ANSWER] }), heldScript({ chunks: [KEPT] })];
  upstream.script("first", hold.script);
  upstream.script("second", other.script);
  const answers = [ask(stage, question(id)), ask(stage, "Hello", "up/second")];
  await Promise.all([hold.asked, other.asked]);
  await deleteWithQuotes(gateway, id);
  expect(leftovers(gateway.dataDir, NEEDLES)).toEqual([]);
  expect((await erasures(gateway)).at(-1)).toMatchObject({
    outcome: "pending",
    detail: { document: id, running: 0, calls: 2 },
  });
  hold.open();
  expect(await answers[0]).toContain(ANSWER);
  // The answer is erased at once, although another call is still in flight.
  await until(() => leftovers(gateway.dataDir, NEEDLES).length === 0);
  other.open();
  expect(await answers[1]).toContain(KEPT);
  await until(() => notes(gateway).length === 0);
  expect(leftovers(gateway.dataDir, NEEDLES)).toEqual([]);
  expect(leftovers(gateway.dataDir, { KEPT })).not.toEqual([]);
  const ended = (await stage.entries()).filter(({ phase }) => phase === "outcome");
  expect(ended).toHaveLength(2);
  expect(await erasures(gateway)).toMatchObject([
    { detail: { payloads: expect.stringMatching(/^\d+\.input$/) } },
    { outcome: "pending" },
    { detail: { payloads: `${ended[0]?.seq}.output`, document: id, reason: "document_deleted" } },
  ]);
});

test("a call that begins after the deletion keeps its texts, and the erasure does not wait for it", async () => {
  const { stage, hold, answer } = await deletedInFlight();
  const later = heldScript({ chunks: [KEPT] });
  stage.upstream.script("second", later.script);
  const second = ask(stage, `Once more: ${KEPT}`, "up/second");
  await later.asked;
  hold.open();
  await answer;
  await until(() => notes(stage.gateway).length === 0);
  later.open();
  await second;
  expect(leftovers(stage.gateway.dataDir, NEEDLES)).toEqual([]);
  const database = ownConnection(stage.gateway.dataDir);
  const kept = database.query("SELECT kind FROM payloads WHERE instr(body, ?) > 0").all(KEPT);
  expect(kept).toHaveLength(2);
});

test("exactly the texts of quoting calls are erased, whichever calls are in flight and in whatever order they end", async () => {
  const stage = await openStage();
  const { gateway, upstream } = stage;
  // Each number is a call; those of `quoting` have the document in their prompts.
  for (const [quoting, order] of [
    [
      [0, 3],
      [5, 0, 1, 3, 4, 2],
    ],
    [
      [1, 2, 5],
      [2, 1, 0, 5, 4, 3],
    ],
    [[4], [0, 1, 2, 3, 5, 4]],
    [[], [3, 0, 5, 1, 4, 2]],
  ] as const) {
    const id = await keys(gateway);
    const isQuoting = (call: number) => (quoting as readonly number[]).includes(call);
    const holds = order.map((_, call) => heldScript({ chunks: [`answer ${call} of ${id.slice(-8)}`] }));
    const answers = holds.map(({ script }, call) => {
      upstream.script(`model-${call}`, script);
      return ask(stage, isQuoting(call) ? question(id) : `Hello ${id.slice(-8)}`, `up/model-${call}`);
    });
    await Promise.all(holds.map(({ asked }) => asked));
    await deleteWithQuotes(gateway, id);
    for (const call of order) {
      holds[call]?.open();
      await answers[call];
    }
    await until(() => notes(gateway).length === 0);
    const left = ownConnection(gateway.dataDir)
      .query<{ body: string; kind: string }, [string]>(
        "SELECT kind, body FROM payloads WHERE instr(body, ?) > 0",
      )
      .all(id.slice(-8));
    const kept = order.filter((call) => !isQuoting(call)).toSorted();
    expect(left.filter(({ kind }) => kind === "input")).toHaveLength(kept.length);
    const outputs = left
      .filter(({ kind }) => kind === "output")
      .map(({ body }) => /answer (\d)/.exec(body)?.[1]);
    expect(outputs.toSorted()).toEqual(kept.map(String));
  }
});

describe("the answer of a later attempt is erased too", () => {
  test("if the first attempt was in flight", async () => {
    const stage = await openStage();
    const { gateway, upstream } = stage;
    const id = await keys(gateway);
    const fails = gate();
    const asked = gate();
    upstream.script("first", () => {
      asked.open();
      return { chunks: [], gate: fails.opened, cutAfter: 0 };
    });
    upstream.script("second", { chunks: [ANSWER] });
    const answer = ask(stage, question(id), "tier:1", { stream: false });
    await asked.opened;
    await deleteWithQuotes(gateway, id);
    fails.open();
    expect(await answer).toContain(ANSWER);
    await until(() => notes(gateway).length === 0);
    expect(leftovers(gateway.dataDir, NEEDLES)).toEqual([]);
  });

  test("if the first attempt had failed and the second waited for its budget", async () => {
    const stage = await openStage();
    const { gateway, upstream } = stage;
    const id = await keys(gateway);
    const hold = heldScript({ chunks: ["paid"], usage: { prompt_tokens: 1, completion_tokens: 1 } });
    upstream.script("priced", (call, index) =>
      index === 0 && typeof hold.script === "function" ? hold.script(call, index) : { chunks: [ANSWER] },
    );
    upstream.script("large", { status: 500 });
    const limited = { max_tokens: 400_000 };
    await gateway.call("PATCH", "/v1/workspace", { body: { budget: { credits_per_month: 1 } } });
    const paid = ask(stage, "Hello", "up/priced", limited);
    await hold.asked;
    const answer = ask(stage, question(id), "tier:2", limited);
    const failed = async () => (await stage.entries()).filter(({ outcome }) => outcome === "failed");
    await until(async () => (await failed()).length === 1);
    await deleteWithQuotes(gateway, id);
    expect((await erasures(gateway)).at(-1)).toMatchObject({ outcome: "pending", detail: { calls: 2 } });
    hold.open();
    await paid;
    expect(await answer).toContain(ANSWER);
    await until(() => notes(gateway).length === 0);
    expect(leftovers(gateway.dataDir, NEEDLES)).toEqual([]);
  });
});

describe("a restart completes the erasure", () => {
  test("if the call ends with it", async () => {
    const { stage, answer } = await deletedInFlight();
    client.abort();
    await expect(answer).rejects.toThrow();
    const again = await restarted(stage);
    await until(() => notes(again).length === 0);
    expect(leftovers(again.dataDir, NEEDLES)).toEqual([]);
    expect(unsettled(readFile(databasePath(again.dataDir)).entries)).toEqual([]);
  });

  test("if the store refused it after the outcome", async () => {
    const { stage, hold, answer } = await deletedInFlight();
    const { dataDir } = stage.gateway;
    // As if the process died between the outcome and the erasure.
    ownConnection(dataDir).run(
      "CREATE TEMP TRIGGER full BEFORE DELETE ON main.payloads BEGIN SELECT RAISE(ABORT, 'full'); END",
    );
    hold.open();
    await answer;
    expect(leftovers(dataDir, { ANSWER })).not.toEqual([]);
    const again = await restarted(stage);
    await until(() => notes(again).length === 0);
    expect(leftovers(dataDir, NEEDLES)).toEqual([]);
    expect((await erasures(again)).filter(({ outcome }) => outcome === "pending")).toHaveLength(1);
  });
});

test("a tool result that names the document is erased when it arrives", async () => {
  const { gateway } = await openStage();
  const upstream = startScriptedMcp(["look_up"]);
  stops.push(() => upstream.close());
  const end = gate();
  const asked = gate();
  await addConnector(gateway, "notes", upstream.url);
  const id = await keys(gateway);
  upstream.answer(async () => {
    asked.open();
    await end.opened;
    return text(`${id} says: ${ANSWER}`);
  });
  const session = await connect(gateway);
  const result = session.ask("tools/call", { name: "notes.look_up", arguments: {} });
  await asked.opened;
  await deleteWithQuotes(gateway, id);
  expect((await erasures(gateway)).at(-1)).toMatchObject({ outcome: "pending", detail: { calls: 1 } });
  end.open();
  expect(JSON.stringify(await result)).toContain(ANSWER);
  await until(() => notes(gateway).length === 0);
  expect(leftovers(gateway.dataDir, NEEDLES)).toEqual([]);
});

test("a server that is killed during a call completes the erasure at its next start", async () => {
  const directory = tempDir();
  stops.push(async () => directory.remove());
  const upstream = startFakeModel();
  stops.push(() => upstream.close());
  const admin = createSecret(systemRandom);
  const config = join(directory.path, "gatehouse.yaml");
  writeFileSync(
    config,
    `providers: { up: { kind: openai-compatible, base_url: "${upstream.url}" } }\ntiers: { 1: { models: [up/first] } }\n`,
  );
  const start = () =>
    serve(["--config", config], { cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: admin } });
  const send = (url: string, method: string, path: string, body?: object) =>
    fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const server = await start();
  const document = { title: "Keys", text: TEXT, scope: "house" };
  const { id } = (await (await send(server.url, "POST", "/v1/vault/documents", document)).json()) as {
    id: string;
  };
  const hold = heldScript({ chunks: [ANSWER] });
  upstream.script("first", hold.script);
  const messages = [{ role: "user", content: question(id) }];
  const lost = send(server.url, "POST", "/v1/chat/completions", { model: "up/first", stream: true, messages })
    .then((response) => response.text())
    .catch(() => "");
  await hold.asked;
  expect((await send(server.url, "DELETE", `/v1/vault/documents/${id}?payloads=true`)).status).toBe(204);
  await server.end("SIGKILL");
  await lost;
  const again = await start();
  const dataDir = join(directory.path, "gatehouse-data");
  await until(() => {
    using database = new Database(databasePath(dataDir), { readonly: true });
    return database.query("SELECT key FROM meta WHERE key LIKE 'quoted/%'").all().length === 0;
  });
  await again.end("SIGTERM");
  expect(leftovers(dataDir, NEEDLES)).toEqual([]);
  expect(unsettled(readFile(databasePath(dataDir)).entries)).toEqual([]);
});

describe("responses", () => {
  async function openResponses() {
    const stage = await openResponsesStage();
    stops.push(() => stage.stop());
    const end = gate();
    const asked = async (count: number) => until(() => stage.upstream.requests.length >= count);
    const script = (more: object = {}) =>
      stage.upstream.script("first", {
        events: eventsOf(responseOf([textItem(ANSWER)])),
        gate: end.opened,
        ...more,
      });
    const post = (request: object) => stage.post(JSON.stringify({ model: "up/first", ...request }));
    return { ...stage, end, asked, script, post };
  }

  test("that continue a quoting response are erased, although their prompts do not name the document", async () => {
    const { gateway, upstream, end, asked, script, post } = await openResponses();
    const id = await keys(gateway);
    const first = responseOf([textItem(ANSWER)]);
    upstream.script("first", { response: first });
    await post({ input: question(id) });
    script();
    const answer = post({ input: "And?", previous_response_id: first.id, stream: true });
    await asked(2);
    await deleteWithQuotes(gateway, id);
    expect(leftovers(gateway.dataDir, NEEDLES)).toEqual([]);
    end.open();
    expect((await answer).bytes.toString()).toContain(ANSWER);
    await until(() => notes(gateway).length === 0);
    expect(leftovers(gateway.dataDir, NEEDLES)).toEqual([]);
  });

  test("in the background are erased when they end", async () => {
    const { gateway, end, asked, script, post } = await openResponses();
    const id = await keys(gateway);
    script();
    await post({ input: question(id), background: true });
    await asked(1);
    await deleteWithQuotes(gateway, id);
    expect((await erasures(gateway)).at(-1)).toMatchObject({ outcome: "pending", detail: { calls: 1 } });
    end.open();
    await until(() => notes(gateway).length === 0);
    expect(leftovers(gateway.dataDir, NEEDLES)).toEqual([]);
  });

  test("in the background that a restart interrupts keep neither answer nor events", async () => {
    const { gateway, asked, script, post } = await openResponses();
    const id = await keys(gateway);
    script({ hangAfter: 6 });
    const reading = post({ input: question(id), background: true, stream: true, metadata: { note: TEXT } });
    await asked(1);
    await deleteWithQuotes(gateway, id);
    await gateway.gateway.stop();
    await reading;
    const half = ANSWER.slice(0, ANSWER.length >> 1);
    const again = await startGateway({ dataDir: gateway.dataDir });
    stops.push(() => again.stop());
    await until(() => notes(again).length === 0);
    expect(leftovers(gateway.dataDir, NEEDLES)).toEqual([]);
    const database = ownConnection(gateway.dataDir);
    expect(database.query("SELECT seq FROM payloads WHERE instr(body, ?) > 0").all(half)).toEqual([]);
    // A block without events remains, so that their ids are not used again.
    expect(database.query("SELECT * FROM response_events WHERE length(frames) > 0").all()).toEqual([]);
    expect(unsettled(readFile(databasePath(gateway.dataDir)).entries)).toEqual([]);
  });
});
