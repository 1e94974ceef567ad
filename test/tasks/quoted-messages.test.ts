/**
 * `DELETE /v1/vault/documents/:id?payloads=true` also erases what was written by tasks whose messages name the
 * document, and by tasks that continue the conversation of one that quotes it.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { allEvents } from "../support/events.ts";
import { ownConnection } from "../support/own-connection.ts";
import { remove, write } from "../support/vault.ts";
import { leftovers } from "../vault/files-support.ts";
import {
  dispatch,
  ended,
  held,
  ledger,
  openEvents,
  run,
  type Stage,
  startStage,
  unsettled,
  until,
} from "./support.ts";

setDefaultTimeout(60_000);

let stage: Stage;

beforeEach(async () => {
  stage = await startStage({ isOnFiles: true, tiers: { 1: ["a"] } });
  await stage.gateway.agent("finder");
});
afterEach(() => stage.stop());

const MARK = "the obnubilated quagga sleeps in the seventh crate";
const [FIRST, SECOND, THIRD] = ["Container number seven.", "As I said, number seven.", "Still number seven."];

function say(words: string): void {
  stage.upstream.script("a", { chunks: [words] });
}

const read = async (id: string) => (await stage.gateway.call("GET", `/v1/tasks/${id}`)).body;
const quagga = () => write(stage.gateway, { title: "Crates", text: MARK });
const asked = (document: string) => ({
  agent: "finder",
  prompt: undefined,
  messages: [{ role: "user", content: [{ type: "file", document }] }],
});

/** Three tasks: the first reads the document, each of the others continues the one before. */
async function chain(document: string) {
  say(FIRST);
  const first = await run(stage.gateway, asked(document));
  say(SECOND);
  const second = await run(stage.gateway, { agent: "finder", prompt: "Sure?", continues: first.id });
  say(THIRD);
  const third = await run(stage.gateway, { agent: "finder", prompt: "Really?", continues: second.id });
  return [first, second, third];
}

test("texts written by such tasks are gone from the file, their inputs stay, and other tasks are kept", async () => {
  const { id } = await quagga();
  say("Nothing to do with it.");
  const plain = await run(stage.gateway, { agent: "finder", prompt: `Say "document":"${id}".` });
  const tasks = await chain(id);
  const needles = { MARK, FIRST, SECOND, THIRD };
  expect(leftovers(stage.gateway.dataDir, needles).length).toBeGreaterThanOrEqual(4);
  await remove(stage.gateway, id, "?payloads=true");
  expect(leftovers(stage.gateway.dataDir, needles)).toEqual([]);
  for (const before of tasks) {
    const after = await read(before.id);
    expect(after).toEqual({ ...before, output: null });
    const events = await allEvents(await openEvents(stage.gateway, before.id));
    expect(events.at(-1)?.data).toEqual(after);
    expect(events.map(({ event }) => event)).not.toContain("output.delta");
  }
  expect(await read(plain.id)).toEqual(plain);
  const entries = await ledger(stage.gateway);
  expect(unsettled(entries)).toEqual([]);
  const erased = entries.filter(({ action }) => action === "payload.erase");
  expect(erased.map(({ task }) => task)).toEqual(tasks.map((task) => task.id));
});

test("a running task that continues such a conversation is erased at its end, with the tasks that continue it", async () => {
  const { id } = await quagga();
  say(FIRST);
  const first = await run(stage.gateway, asked(id));
  const hold = held({ chunks: [SECOND] });
  stage.upstream.script("a", hold.script);
  const second = await dispatch(stage.gateway, { agent: "finder", prompt: "Sure?", continues: first.id });
  await hold.asked;
  await remove(stage.gateway, id, "?payloads=true");
  hold.open();
  expect((await ended(stage.gateway, second)).status).toBe("succeeded");
  await until(async () => (await read(second)).output === null);
  await until(() => leftovers(stage.gateway.dataDir, { MARK, FIRST, SECOND }).length === 0);
  // From here on, the conversation contains nothing from the document.
  say("I do not know.");
  const third = await run(stage.gateway, { agent: "finder", prompt: "Really?", continues: second });
  expect(await read(third.id)).toMatchObject({ output: "I do not know." });
  expect(JSON.stringify(stage.upstream.requests.at(-1)?.body.messages)).toContain("was erased");
});

test("texts of a chain that the store refused to erase are erased by the next start", async () => {
  const { id } = await quagga();
  const tasks = await chain(id);
  const { dataDir } = stage.gateway;
  ownConnection(dataDir).run(
    "CREATE TEMP TRIGGER full BEFORE DELETE ON main.payloads WHEN OLD.body = 'Still number seven.' BEGIN SELECT RAISE(ABORT, 'full'); END",
  );
  await remove(stage.gateway, id, "?payloads=true");
  expect(leftovers(dataDir, { THIRD })).not.toEqual([]);
  await stage.gateway.gateway.stop();
  const again = await startStage({ isOnFiles: true, tiers: { 1: ["a"] }, dataDir, upstream: stage.upstream });
  await until(() => leftovers(dataDir, { MARK, FIRST, SECOND, THIRD }).length === 0);
  for (const { id: task } of tasks) {
    expect((await again.gateway.call("GET", `/v1/tasks/${task}`)).body.output).toBeNull();
  }
  await again.stop();
  stage = { ...stage, stop: () => stage.upstream.close() };
});

test("a task that was sent the document with an earlier task's messages is found, though that task was erased", async () => {
  const { id } = await quagga();
  const [first, second, third] = await chain(id);
  const [intent] = (await ledger(stage.gateway)).filter((each) => each.task === first?.id);
  await stage.gateway.call("DELETE", `/v1/ledger/${intent?.seq}/payload`);
  expect(leftovers(stage.gateway.dataDir, { SECOND, THIRD })).not.toEqual([]);
  await remove(stage.gateway, id, "?payloads=true");
  expect(leftovers(stage.gateway.dataDir, { MARK, FIRST, SECOND, THIRD })).toEqual([]);
  expect([(await read(second?.id)).output, (await read(third?.id)).output]).toEqual([null, null]);
});

test("a task is found if it continues a task whose tool read the document, although that task was erased", async () => {
  const { id } = await quagga();
  const other = await write(stage.gateway, { title: "Others", text: "Nothing of that kind." });
  const searching = { toolCalls: [{ name: "vault__read", arguments: { document_id: id } }] };
  stage.upstream.script("a", (_, index) => (index === 0 ? searching : { chunks: [FIRST] }));
  const first = await run(stage.gateway, { agent: "finder", tools: ["vault.read"] });
  say(SECOND);
  const second = await run(stage.gateway, { agent: "finder", prompt: "Sure?", continues: first.id });
  say(THIRD);
  const third = await run(stage.gateway, { agent: "finder", prompt: "Really?", continues: second.id });
  const [intent] = (await ledger(stage.gateway)).filter((each) => each.task === first.id);
  expect((await stage.gateway.call("DELETE", `/v1/ledger/${intent?.seq}/payload`)).status).toBe(204);
  await remove(stage.gateway, other.id, "?payloads=true");
  expect([(await read(second.id)).output, (await read(third.id)).output]).toEqual([SECOND, THIRD]);
  await remove(stage.gateway, id, "?payloads=true");
  expect([(await read(second.id)).output, (await read(third.id)).output]).toEqual([null, null]);
  expect(leftovers(stage.gateway.dataDir, { MARK, FIRST, SECOND, THIRD })).toEqual([]);
});

test("a document that a client wrote itself, with a person's approval, is gone from the requested arguments", async () => {
  const { gateway } = stage;
  await gateway.agent("writer", { approvals: ["vault.write"] });
  const token = await gateway.token({ agent: "writer" });
  const body = { arguments: { title: "Crates", text: MARK } };
  const called = await gateway.call("POST", "/v1/tools/vault.write/call", { token, body });
  expect(called.status).toBe(202);
  const { task } = called.body;
  await until(async () => (await gateway.call("GET", "/v1/approvals")).body.data.length === 1);
  const [approval] = (await gateway.call("GET", "/v1/approvals")).body.data;
  await gateway.call("POST", `/v1/tasks/${task}/approvals/${approval.call_id}`, {
    body: { decision: "approve", reason: "fine" },
  });
  await ended(gateway, task);
  const id = (await gateway.call("GET", "/v1/vault/documents")).body.data[0].id;
  await remove(gateway, id, "?payloads=true");
  expect(leftovers(gateway.dataDir, { MARK })).toEqual([]);
});
