/** A document that a client's agent shows to a model in one response, and that later responses of the conversation quote. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { until } from "../support/until.ts";
import { leftovers } from "../vault/files-support.ts";
import {
  eventsOf,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "./responses-support.ts";

let stage: ResponsesStage;
beforeAll(async () => {
  stage = await openResponsesStage();
});
afterAll(() => stage.stop());

async function keys(text: string): Promise<string> {
  const body = { title: "Keys", text, scope: "house" };
  return (await stage.gateway.call("POST", "/v1/vault/documents", { body })).body.id;
}
const deleteWithQuotes = (id: string) =>
  stage.gateway.call("DELETE", `/v1/vault/documents/${id}?payloads=true`);

/** One step of a conversation. */
async function say(words: string, request: object): Promise<{ id: string; item: string; intent: number }> {
  const item = textItem(words) as { id: string };
  const response = responseOf([item]);
  const isStream = (request as { stream?: boolean }).stream;
  stage.upstream.script("first", isStream ? { events: eventsOf(response) } : { response });
  const sent = await stage.post(JSON.stringify({ model: "up/first", ...request }));
  expect(sent.response.status).toBe(200);
  const intent = Number(sent.response.headers.get("gatehouse-ledger"));
  return { id: String(response.id), item: item.id, intent };
}

/** A conversation that quotes a document in its first prompt, and continues in every possible way. */
async function conversation(document: string, text: string, mark: string) {
  const first = await say(`${mark} one`, { input: `Use ${JSON.stringify({ document_id: document, text })}` });
  const second = await say(`${mark} two`, { input: "And?", previous_response_id: first.id, stream: true });
  const third = await say(`${mark} three`, { input: "So?", previous_response_id: second.id });
  const reference = [{ type: "item_reference", id: second.item }];
  await say(`${mark} four`, { input: [...reference, { role: "user", content: "Then?" }] });
  const copy = { ...textItem(`${mark} three`, third.item) };
  await say(`${mark} five`, { input: [copy, { role: "user", content: "At last?" }] });
  return { first, second };
}

test("are erased with it, however they continue, and other conversations stay", async () => {
  const text = "The spare key hangs in the obnubilated boathouse.";
  const id = await keys(text);
  await conversation(id, text, "in the shed");
  const other = await say("kept words", { input: "Hello" });
  await say("more kept words", { input: "And?", previous_response_id: other.id });
  const needles = { text, mark: "in the shed" };
  expect(leftovers(stage.gateway.dataDir, needles).length).toBeGreaterThan(1);
  expect((await deleteWithQuotes(id)).status).toBe(204);
  expect(leftovers(stage.gateway.dataDir, needles)).toEqual([]);
  expect((await stage.ask("GET", `/${other.id}`)).status).toBe(200);
  expect(leftovers(stage.gateway.dataDir, { more: "more kept words" })).not.toEqual([]);
});

test("are erased with it, although the earlier responses were erased before", async () => {
  const text = "The second key lies under the obnubilated stone.";
  const id = await keys(text);
  const { first, second } = await conversation(id, text, "by the pond");
  for (const { intent } of [first, second]) {
    expect((await stage.gateway.call("DELETE", `/v1/ledger/${intent}/payload`)).status).toBe(204);
  }
  expect(leftovers(stage.gateway.dataDir, { mark: "by the pond" })).not.toEqual([]);
  expect((await deleteWithQuotes(id)).status).toBe(204);
  expect(leftovers(stage.gateway.dataDir, { text, mark: "by the pond" })).toEqual([]);
});

test("are erased when they end, if they are in progress when the document is deleted", async () => {
  const text = "The third key is in the obnubilated teapot.";
  const id = await keys(text);
  const first = await say("in the kitchen one", {
    input: `Use ${JSON.stringify({ document_id: id, text })}`,
  });
  const hold = Promise.withResolvers<void>();
  const response = responseOf([textItem("in the kitchen two")]);
  stage.upstream.script("first", { events: eventsOf(response), gate: hold.promise });
  const begun = Promise.withResolvers<void>();
  const body = { model: "up/first", stream: true, input: "And?", previous_response_id: first.id };
  const open = stage.post(JSON.stringify(body), { begun: begun.resolve });
  await begun.promise;
  expect((await deleteWithQuotes(id)).status).toBe(204);
  expect(leftovers(stage.gateway.dataDir, { text, one: "in the kitchen one" })).toEqual([]);
  const { body: pending } = await stage.gateway.call(
    "GET",
    "/v1/ledger?action=payload.erase&order=desc&limit=1",
  );
  expect(pending.data[0]).toMatchObject({
    outcome: "pending",
    detail: { document: id, running: 0, calls: 1 },
  });
  hold.resolve();
  expect((await open).bytes.toString()).toContain("in the kitchen two");
  await until(() => leftovers(stage.gateway.dataDir, { two: "in the kitchen two" }).length === 0);
  const { body: done } = await stage.gateway.call(
    "GET",
    "/v1/ledger?action=payload.erase&order=desc&limit=1",
  );
  expect(done.data[0]).toMatchObject({ outcome: "succeeded", detail: { document: id } });
});

test("are erased with it if they are made in the background, ended or in progress", async () => {
  const text = "The fourth key is in the obnubilated clock.";
  const id = await keys(text);
  const dispatch = async (request: object) => {
    const body = { model: "up/first", background: true, stream: true, ...request };
    const reader = (await stage.client().responses.create(body as never)) as unknown as AsyncIterable<{
      response?: { id: string };
    }>;
    for await (const event of reader) if (event.response) return event.response.id;
    throw new Error("no response was dispatched");
  };
  const statusOf = async (response: string) => (await stage.ask("GET", `/${response}`)).body.status;
  stage.upstream.script("first", { events: eventsOf(responseOf([textItem("on the wall one")])) });
  const first = await dispatch({ input: `Use ${JSON.stringify({ document_id: id, text })}` });
  await until(async () => (await statusOf(first)) === "completed");
  const hold = Promise.withResolvers<void>();
  const whole = responseOf([textItem("on the wall two")]);
  const before = stage.upstream.requests.length;
  stage.upstream.script("first", { events: eventsOf(whole), gate: hold.promise });
  const second = await dispatch({ input: "And?", previous_response_id: first });
  await until(() => stage.upstream.requests.length > before);
  expect((await deleteWithQuotes(id)).status).toBe(204);
  expect(leftovers(stage.gateway.dataDir, { text, one: "on the wall one" })).toEqual([]);
  hold.resolve();
  await until(async () => ["completed", undefined].includes(await statusOf(second)));
  await until(() => leftovers(stage.gateway.dataDir, { mark: "on the wall" }).length === 0);
  expect((await stage.ask("GET", `/${second}`)).status).toBe(404);
});

test("an erasure records only ids, and few of them: entries are never erased", async () => {
  const documents = Array.from({ length: 3_000 }, (_, index) => `doc_${String(index).padStart(26, "0")}`);
  const item = { type: "message", role: "user", id: "x".repeat(1_000_000), content: documents.join(" ") };
  const { intent } = await say("one", { input: [item] });
  expect((await stage.gateway.call("DELETE", `/v1/ledger/${intent}/payload`)).status).toBe(204);
  const { body } = await stage.gateway.call("GET", "/v1/ledger?action=payload.erase&order=desc&limit=200");
  expect(JSON.stringify(body.data).length).toBeLessThan(200_000);
});

test.each([
  ["70 items of other responses before the one that quotes", 70, 0],
  ["1,100 other documents before the quoted one", 0, 1_100],
  ["more documents than can be recorded", 0, 5_000],
])("are erased with it if an erased response named %s", async (_, items, documents) => {
  const text = "The second key lies under the obnubilated stone.";
  const id = await keys(text);
  const others = Array.from({ length: documents }, (_, at) => `doc_${String(at).padStart(26, "0")}`).join(
    " ",
  );
  const earlier = Array.from({ length: items }, (_, at) => textItem(`harmless ${at}`)) as { id: string }[];
  stage.upstream.script("first", { response: responseOf(earlier) });
  if (items > 0) await stage.post(JSON.stringify({ model: "up/first", input: "Hello" }));
  const first = await say("by the pond one", {
    input: `${others} ${JSON.stringify({ document_id: id, text })}`,
  });
  const references = [...earlier, { id: first.item }].map((item) => ({
    type: "item_reference",
    id: item.id,
  }));
  const second = await say("by the pond two", {
    input: [...references, { role: "user", content: documents > 0 ? `${others} ${id}` : "And?" }],
  });
  await say("by the pond three", { input: "So?", previous_response_id: second.id });
  const erased = documents > 0 ? [first, second] : [second];
  for (const { intent } of erased) {
    expect((await stage.gateway.call("DELETE", `/v1/ledger/${intent}/payload`)).status).toBe(204);
  }
  expect((await deleteWithQuotes(id)).status).toBe(204);
  expect(leftovers(stage.gateway.dataDir, { text, three: "by the pond three" })).toEqual([]);
});
