/** How much of an earlier conversation is read, held in memory and counted. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { until } from "../../support/until.ts";
import {
  freshId,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "../responses-support.ts";

let stage: ResponsesStage;
beforeAll(async () => {
  stage = await openResponsesStage();
});
afterAll(() => stage.stop());

const TOOLS_BYTES = 1024 * 1024;
/** Definitions that a client sends with each request. They are not part of the conversation. */
const tools = [
  {
    ...{ type: "function", name: "lookup", strict: false },
    ...{ description: "x".repeat(TOOLS_BYTES), parameters: { type: "object", properties: {} } },
  },
];

/** One step at the first provider. */
async function say(words: string, request: object): Promise<{ id: string; item: string }> {
  const item = freshId("msg");
  const response = responseOf([textItem(words, item)], { tools });
  stage.upstream.script("first", { response });
  const sent = await stage.post(JSON.stringify({ model: "up/first", tools, ...request }));
  expect(sent.response.status).toBe(200);
  return { id: String(response.id), item };
}

/** Continues at a provider that needs the conversation. */
async function elsewhere(request: object) {
  stage.upstream.script("other", { response: responseOf([textItem("done")]) });
  const sent = await stage.post(JSON.stringify({ model: "second/other", input: "x", ...request }));
  const body = JSON.parse(stage.upstream.requests.at(-1)?.bytes.toString() ?? "");
  return { status: sent.response.status, code: sent.response.headers.get("gatehouse-code"), body };
}

test("a short conversation of many steps is sent, however long the tools of each step are", async () => {
  let last = await say("answer 0", { input: "question 0" });
  for (let step = 1; step <= 12; step++) {
    last = await say(`answer ${step}`, { input: `question ${step}`, previous_response_id: last.id });
  }
  const { status, body } = await elsewhere({ previous_response_id: last.id });
  expect([status, body.input.length]).toEqual([200, 27]);
  const listed = await stage.ask("GET", `/${last.id}/input_items?limit=100`);
  expect([listed.status, listed.body.data.length]).toEqual([200, 25]);
});

test("a response is read once, however often later requests name its items", async () => {
  const first = await say("y".repeat(1024 * 1024), { input: "a long text" });
  let last = first;
  for (let step = 0; step < 6; step++) {
    const input = [
      { type: "item_reference", id: first.item },
      { role: "user", content: "again" },
    ];
    last = await say("short", { input, previous_response_id: last.id });
  }
  expect((await elsewhere({ previous_response_id: last.id })).status).toBe(200);
});

test("an item counts as often as it is sent", async () => {
  const { id, item } = await say("y".repeat(1024 * 1024), { input: "a long text" });
  const input = Array.from({ length: 11 }, () => ({ type: "item_reference", id: item }));
  const own = await elsewhere({ input });
  expect([own.status, own.code]).toEqual([413, "body_too_large"]);
  const last = await say("short", { input, previous_response_id: id });
  const earlier = await elsewhere({ previous_response_id: last.id });
  expect([earlier.status, earlier.code]).toEqual([413, "body_too_large"]);
});

test("a conversation may have at most as many members as one request; its own provider reads it itself", async () => {
  const input = Array.from({ length: 6_000 }, () => ({ role: "user", content: "x" }));
  const first = await say("one", { input });
  const second = await say("two", { input, previous_response_id: first.id });
  expect((await elsewhere({ previous_response_id: second.id })).status).toBe(200);
  const together = await elsewhere({ input, previous_response_id: second.id });
  expect([together.status, together.code]).toEqual([413, "body_too_large"]);
  const third = await say("three", { input, previous_response_id: second.id });
  const all = await elsewhere({ previous_response_id: third.id });
  expect([all.status, all.code]).toEqual([413, "body_too_large"]);
  expect((await stage.ask("GET", `/${second.id}/input_items`)).status).toBe(200);
  const listed = await stage.ask("GET", `/${third.id}/input_items?limit=1`);
  expect([listed.status, listed.body.error.code]).toEqual([413, "body_too_large"]);
});

test("a request may name at most 1,024 items only by their ids", async () => {
  const input = Array.from({ length: 1_025 }, (_, index) => ({ type: "item_reference", id: `msg_${index}` }));
  const sent = await stage.post(JSON.stringify({ model: "up/first", input }));
  const { error } = JSON.parse(sent.bytes.toString());
  expect([sent.response.status, error.code, error.param]).toEqual([422, "validation_failed", "input"]);
  const fewer = await stage.post(JSON.stringify({ model: "up/first", input: input.slice(1) }));
  expect(fewer.response.status).toBe(404);
});

test.each(["asc", "desc"])("pages of items without ids continue after each other (%s)", async (order) => {
  const input = Array.from({ length: 5 }, (_, index) => ({ role: "user", content: `question ${index}` }));
  const first = await say("one", { input });
  const second = await say("two", { input: [...input, { id: "msg_given", role: "user", content: "last" }] });
  const { id } = await say("three", { input, previous_response_id: first.id });
  const whole = (await stage.ask("GET", `/${id}/input_items?order=${order}`)).body.data;
  expect(new Set(whole.map(({ id }: { id: string }) => id)).size).toBe(11);
  const paged = [];
  for (let more = true, after = ""; more; ) {
    const { body } = await stage.ask("GET", `/${id}/input_items?order=${order}&limit=3${after}`);
    paged.push(...body.data);
    more = body.has_more;
    after = `&after=${body.last_id}`;
  }
  expect(paged).toEqual(whole);
  // Ids of another response's items are not ids of this one's.
  const others = (await stage.ask("GET", `/${second.id}/input_items`)).body.data;
  for (const other of [...others, { id: "msg_0" }, { id: "fc_00000001" }]) {
    const { status, body } = await stage.ask("GET", `/${id}/input_items?after=${other.id}`);
    expect([other.id, status, body.error.code]).toEqual([other.id, 404, "not_found"]);
  }
});

test("a conversation of more than 10 MiB is refused", async () => {
  let last = await say("short", { input: "z".repeat(6 * 1024 * 1024) });
  last = await say("short", { input: "z".repeat(5 * 1024 * 1024), previous_response_id: last.id });
  const { status, code } = await elsewhere({ previous_response_id: last.id });
  expect([status, code]).toEqual([413, "body_too_large"]);
});

test("items of a response are listed without earlier items that are gone, and keep their ids", async () => {
  const first = await say("one", { input: "first question" });
  const reference = { type: "item_reference", id: first.item };
  const second = await say("two", { input: [reference, { role: "user", content: "second question" }] });
  const third = await say("three", { input: "third question", previous_response_id: second.id });
  const path = `/${third.id}/input_items?order=asc`;
  const before = (await stage.ask("GET", path)).body.data;
  expect(before.map(({ content }: { content: { text: string }[] }) => content[0]?.text)).toEqual([
    ...["one", "second question", "two", "third question"],
  ]);
  await stage.ask("DELETE", `/${first.id}`);
  const without = (await stage.ask("GET", path)).body.data;
  expect(without).toEqual([reference, ...before.slice(1)]);
  await stage.ask("DELETE", `/${second.id}`);
  expect((await stage.ask("GET", path)).body.data).toEqual(before.slice(3));
});

/** Sends the beginning of a body, whose memory stays in use until `leave` aborts. */
function upload(bytes: number, leave: AbortSignal): void {
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new Uint8Array(bytes).fill(0x20)),
  });
  fetch(`${stage.gateway.url}/v1/responses`, {
    ...{ method: "POST", signal: leave, body },
    headers: { "content-type": "application/json", authorization: `Bearer ${stage.clerk}` },
  }).catch(() => {});
}

test("texts that are read count towards their workspace's memory", async () => {
  const long = "z".repeat(8 * 1024 * 1024);
  const { id } = await say(long, { input: long });
  const other = await say(long, { input: long });
  const leave = new AbortController();
  await until(async () => {
    for (let each = 0; each < 5; each++) upload(8 * 1024 * 1024, leave.signal);
    return (await stage.ask("GET", `/${id}`)).status === 429;
  });
  const { status, body: refused } = await stage.ask("GET", `/${id}/input_items`);
  expect([status, refused.error?.code]).toEqual([429, "rate_limited"]);
  // No text is read to delete them.
  expect((await stage.ask("DELETE", `/${other.id}`)).status).toBe(200);
  leave.abort();
  await until(async () => (await stage.ask("GET", `/${id}`)).status === 200);
}, 120_000);

describe("a call reserves", () => {
  /** What a call of a model with a price has reserved. */
  async function reservedFor(request: object): Promise<number> {
    stage.upstream.script("priced", { response: responseOf([textItem("done")]) });
    const sent = await stage.post(JSON.stringify({ model: "up/priced", ...request }));
    expect(sent.response.status).toBe(200);
    const [intent] = await stage.entriesOf(sent.response);
    return Number(intent?.detail?.reserved);
  }

  const BYTES = 100_000;
  /** The lowest ratio of tokens to bytes that is ever assumed, at a price of 1,000 micro-credits for a token. */
  const LEAST_FOR_EACH_BYTE = 1_000 / 3;

  test("for an item as often as it is named, if the item's own provider reads it", async () => {
    const { item } = await say("y".repeat(BYTES), { input: "a long text" });
    const naming = (times: number) => Array(times).fill({ type: "item_reference", id: item });
    const once = await reservedFor({ input: naming(1) });
    const often = await reservedFor({ input: naming(50) });
    expect(often - once).toBeGreaterThan(49 * BYTES * LEAST_FOR_EACH_BYTE);
  });

  test("for a file that an earlier request named by its address", async () => {
    const content = [{ type: "input_file", file_url: "https://files.example/a.pdf" }];
    const named = await say("read", { input: [{ role: "user", content }] });
    const none = await say("read", { input: [{ role: "user", content: "hi" }] });
    for (const model of ["up/priced", "second/priced"]) {
      const further = async ({ id }: { id: string }) =>
        reservedFor({ model, input: "and?", previous_response_id: id });
      const difference = (await further(named)) - (await further(none));
      expect(difference).toBeGreaterThan(256 * 1024 * LEAST_FOR_EACH_BYTE);
    }
  });
});
