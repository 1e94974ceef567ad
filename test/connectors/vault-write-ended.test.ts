/** `vault.write` that ends early: the reported outcome is what really happened, and nothing is written afterwards. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { type Client, connect, type Message, request } from "../mcp/support.ts";
import { FakeClock } from "../support/clock.ts";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { fileStore, type LastingStore } from "../support/lasting-store.ts";
import { ownConnection } from "../support/own-connection.ts";
import { reseal } from "../support/seals.ts";
import { longText, write } from "../support/vault.ts";
import { type Entry, type Gate, gate, ledger, unsettled, until } from "../tasks/support.ts";

let gateway: TestGateway;
let embeddings: FakeEmbeddings;
let client: Client;
let store: LastingStore;
beforeEach(async () => {
  embeddings = startFakeEmbeddings();
  const provider = `up: { kind: openai-compatible, base_url: "${embeddings.baseUrl}" }`;
  // The documents are read from its file, without waiting.
  store = fileStore();
  gateway = await startGateway({
    ...store.options,
    // A document waits for its vectors for as long as the test holds them back.
    clock: new FakeClock(),
    yaml: `providers:\n  ${provider}\nembeddings: { model: up/words }\n`,
  });
  await gateway.agent("clerk");
  client = await connect(gateway, { token: await gateway.token({ agent: "clerk" }) });
});
afterEach(async () => {
  await gateway.stop();
  await store.remove();
  await embeddings.stop();
});

interface Held extends Gate {
  readonly id: number;
  readonly answer: Promise<Message>;
}

/** Starts a call that has read its document and waits for its vectors, before the write. */
async function hold(by: Client, text = "The bittern booms."): Promise<Held> {
  const vectors = gate();
  const before = embeddings.requests.length;
  embeddings.script({ gate: vectors.opened });
  const message = request("tools/call", { name: "vault__write", arguments: { title: "Held", text } });
  const answer = by.post(message).then(({ last }) => last);
  await embeddings.arrived(before + 1);
  return { ...vectors, id: message.id, answer };
}

/**
 * Releases the call and waits for everything that it could still do. Later writes queue after it, and then every
 * document is live.
 */
async function letGo(held: Held): Promise<void> {
  held.open();
  await held.answer;
  for (const text of ["Behind it.", "Behind that."]) await write(gateway, { title: "Behind", text });
  await until(() => documents().every(({ state }) => state === "live"));
}

/** All documents in the store, including those that are not shown. */
function documents(): { readonly title: string; readonly state: string }[] {
  const file = new Database(databasePath(gateway.dataDir), { readonly: true });
  const find = "SELECT title, state FROM vault_documents ORDER BY title";
  const rows = file.query<{ title: string; state: string }, []>(find).all();
  return rows;
}

/** The titles of documents that are shown. */
const titles = (): string[] => documents().flatMap(({ title, state }) => (state === "live" ? [title] : []));

async function outcome(): Promise<Partial<Entry> | undefined> {
  const entries = await ledger(gateway);
  expect(unsettled(entries)).toEqual([]);
  const ended = entries.filter(({ tool, phase }) => tool === "vault.write" && phase === "outcome");
  expect(ended).toHaveLength(1);
  return ended[0];
}

const stop = () => gateway.call("POST", "/v1/agents/clerk/stop");
const TEXTS = [
  ["a short document", "The bittern booms."],
  ["one that is written in several slices", longText("bittern", 400)],
] as const;

describe.each(TEXTS)("%s", (_, text) => {
  test("is not written once a stop of its agent has been answered", async () => {
    const held = await hold(client, text);
    expect((await stop()).status).toBe(200);
    await letGo(held);
    expect((await held.answer).error.data.code).toBe("agent_stopped");
    expect(titles()).toEqual(["Behind", "Behind"]);
    expect(await outcome()).toMatchObject({ outcome: "cancelled", code: "agent_stopped" });
  });

  test.each([
    ["that the server shuts down", "shutdown"],
    ["that its agent was stopped", "agent_stopped"],
    ["nothing", undefined],
  ])("is not written once its client has cancelled it, saying %s", async (_said, reason) => {
    const own = await connect(gateway);
    const held = await hold(own, text);
    await own.tell("notifications/cancelled", { requestId: held.id, ...(reason ? { reason } : {}) });
    await letGo(held);
    expect(await held.answer).toBeUndefined();
    expect(titles()).toEqual(["Behind", "Behind"]);
    expect(await outcome()).toMatchObject({ outcome: "cancelled", code: null });
  });
});

test("a removed agent writes nothing any more", async () => {
  const held = await hold(client);
  expect((await gateway.call("DELETE", "/v1/agents/clerk")).status).toBe(204);
  await letGo(held);
  expect(titles()).toEqual(["Behind", "Behind"]);
  expect(await outcome()).toMatchObject({ outcome: "cancelled" });
});

test("a document written before its agent is stopped has succeeded, and stays", async () => {
  const held = await hold(client);
  held.open();
  expect((await held.answer).result.structuredContent.title).toBe("Held");
  await stop();
  expect(titles()).toEqual(["Held"]);
  expect(await outcome()).toMatchObject({ outcome: "succeeded" });
});

test("a write whose agent turns out to be stopped at that moment is refused, although nobody notified the call", async () => {
  const held = await hold(client);
  const file = ownConnection(gateway.dataDir);
  file.run("UPDATE agents SET status = 'stopped' WHERE name = 'clerk'");
  reseal(file, gateway.dataDir, "agents");
  await letGo(held);
  const { isError, content } = (await held.answer).result;
  expect([isError, content[0].text]).toEqual([true, "The agent was stopped."]);
  expect(titles()).toEqual(["Behind", "Behind"]);
  expect(await outcome()).toMatchObject({ outcome: "failed", code: "tool_error" });
});

test("a write whose new document exists has succeeded, even if its agent is stopped while the previous version is being removed", async () => {
  const { id } = await write(gateway, { title: "Before", text: longText("crake", 600) });
  const input = { id, title: "After", text: "The bittern booms." };
  const message = request("tools/call", { name: "vault__write", arguments: input });
  const answer = client.post(message);
  await until(() => titles().includes("After"));
  await stop();
  expect((await answer).last.result.structuredContent.title).toBe("After");
  await until(() => documents().length === 1);
  expect(titles()).toEqual(["After"]);
  expect(await outcome()).toMatchObject({ outcome: "succeeded" });
});

test("the end of the process does not wait for it, and records it as cancelled", async () => {
  const held = await hold(client);
  const { dataDir } = gateway;
  await gateway.gateway.stop();
  expect(titles()).toEqual([]);
  const file = new Database(databasePath(dataDir), { readonly: true });
  const rows = file.query<{ bytes: string }, []>("SELECT bytes FROM ledger ORDER BY seq").all();
  const calls = rows
    .map(({ bytes }) => JSON.parse(bytes) as Entry)
    .filter(({ tool }) => tool === "vault.write");
  expect(calls.map(({ phase, outcome: said }) => [phase, said])).toEqual([
    ["intent", "allowed"],
    ["outcome", "cancelled"],
  ]);
  held.open();
  await held.answer.catch(() => {});
  gateway = await startGateway();
});

test("stopped at any moment, it exists if and only if it was reported as succeeded, and at once", async () => {
  // More turns of the event loop than pass between the request and its answer.
  const wroteTitles = new Set<string>();
  for (let turns = 0; turns < 60; turns += 3) {
    const title = `Raced ${turns}`;
    const input = { title, text: "The bittern booms." };
    const answer = client.post(request("tools/call", { name: "vault__write", arguments: input }));
    for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
    await stop();
    const atOnce = titles().includes(title);
    await answer;
    expect([turns, titles().includes(title)]).toEqual([turns, atOnce]);
    if (atOnce) wroteTitles.add(title);
    await gateway.call("POST", "/v1/agents/clerk/resume");
  }
  await write(gateway, { title: "Behind", text: "Behind it." });
  expect(titles()).toEqual(["Behind", ...[...wroteTitles].sort()]);
  const entries = await ledger(gateway);
  expect(unsettled(entries)).toEqual([]);
  const done = entries.filter(({ tool, phase }) => tool === "vault.write" && phase === "outcome");
  expect(done.filter(({ outcome: said }) => said === "succeeded")).toHaveLength(wroteTitles.size);
});
