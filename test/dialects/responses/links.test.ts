/** How much of an earlier conversation is read, kept and counted. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { until } from "../../support/until.ts";
import {
  eventsOf,
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
/** Definitions that a client sends with each request, and that are not a part of the conversation. */
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

test("a short conversation of many steps is sent, however long the tools of its steps", async () => {
  let last = await say("answer 0", { input: "question 0" });
  for (let step = 1; step <= 12; step++) {
    last = await say(`answer ${step}`, { input: `question ${step}`, previous_response_id: last.id });
  }
  const { status, body } = await elsewhere({ previous_response_id: last.id });
  expect([status, body.input.length]).toEqual([200, 27]);
  const listed = await stage.ask("GET", `/${last.id}/input_items?limit=100`);
  expect([listed.status, listed.body.data.length]).toEqual([200, 25]);
});

test("a response whose items later requests name again and again is counted once", async () => {
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

test("a conversation of more than 10 MiB is refused", async () => {
  let last = await say("short", { input: "z".repeat(6 * 1024 * 1024) });
  last = await say("short", { input: "z".repeat(5 * 1024 * 1024), previous_response_id: last.id });
  const { status, code } = await elsewhere({ previous_response_id: last.id });
  expect([status, code]).toEqual([413, "body_too_large"]);
});

test("items of a response are listed without the earlier ones that are gone, and their ids stay", async () => {
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

test("texts that are read count as memory of their workspace", async () => {
  const { id } = await say("short", { input: "z".repeat(8 * 1024 * 1024) });
  const events = eventsOf(responseOf([textItem("one two")]));
  stage.upstream.script("first", { events, hangAfter: 2 });
  const body = JSON.stringify({ model: "up/first", stream: true, input: "z".repeat(8 * 1024 * 1024) });
  const leave = new AbortController();
  // A stream that nobody holds is closed.
  const held: unknown[] = [];
  const open = async () => {
    const { status, body: stream } = await fetch(`${stage.gateway.url}/v1/responses`, {
      ...{ method: "POST", signal: leave.signal, body },
      headers: { "content-type": "application/json", authorization: `Bearer ${stage.clerk}` },
    });
    const reader = stream?.getReader();
    held.push(reader);
    await reader?.read();
    return status;
  };
  while ((await open()) === 200) {}
  for (const path of [`/${id}`, `/${id}/input_items`]) {
    const { status, body: refused } = await stage.ask("GET", path);
    expect([path, status, refused.error?.code]).toEqual([path, 429, "rate_limited"]);
  }
  expect(held.length).toBeGreaterThan(1);
  leave.abort();
  await until(async () => (await stage.ask("GET", `/${id}`)).status === 200);
}, 120_000);
