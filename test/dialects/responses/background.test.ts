/** Background responses: dispatched, read, resumed, cancelled and stopped. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import type OpenAI from "openai";
import { createdResponse } from "../../../src/dialects/responses/background/response-forms.ts";
import { ownConnection } from "../../support/own-connection.ts";
import { until } from "../../support/until.ts";
import {
  eventsOf,
  freshId,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "../responses-support.ts";
import type { LedgerRow } from "../support.ts";

let stage: ResponsesStage;
beforeAll(async () => {
  stage = await openResponsesStage();
});
afterAll(() => stage.stop());

const ANSWER = "Good evening to you";
/** An answer of the provider, after `gate`. */
function script(gate?: Promise<unknown>, text = ANSWER) {
  const whole = responseOf([textItem(text)]);
  stage.upstream.script("first", { events: eventsOf(whole), ...(gate ? { gate } : {}) });
  return whole;
}

async function dispatch(more: object = {}, token = stage.clerk) {
  const body = { model: "up/first", input: "Good morning", background: true, ...more };
  const { response, bytes } = await stage.post(JSON.stringify(body), { token });
  return { response, body: JSON.parse(bytes.toString()) };
}

async function read(id: string, token = stage.clerk) {
  return (await stage.ask("GET", `/${id}`, token)).body;
}

async function ended(id: string, token = stage.clerk) {
  let response = await read(id, token);
  await until(async () => {
    response = await read(id, token);
    return !["queued", "in_progress"].includes(response.status);
  });
  return response;
}

test("a response is queued, then in progress, then complete", async () => {
  const gate = Promise.withResolvers<void>();
  const whole = script(gate.promise);
  const { response, body } = await dispatch({ metadata: { a: "b" }, instructions: "Be brief." });
  expect(response.status).toBe(200);
  expect(body.id).toMatch(/^resp_/);
  expect(body).toMatchObject({
    ...{ object: "response", status: "queued", background: true },
    ...{ store: true, output: [], metadata: { a: "b" }, instructions: "Be brief.", error: null },
  });
  await until(async () => (await read(body.id)).status === "in_progress");
  gate.resolve();
  const done = await ended(body.id);
  expect(done).toMatchObject({ id: body.id, status: "completed", background: true, store: true });
  expect(done.output).toEqual(whole.output);
  const sent = JSON.parse(String(stage.upstream.requests.at(-1)?.bytes));
  expect(sent).toMatchObject({ model: "first", stream: true, background: false, store: false });

  const [dispatched, outcome] = await stage.entriesOf(response, "response.dispatch");
  expect(dispatched).toMatchObject({ phase: "intent", agent: "clerk", outcome: "allowed" });
  expect(response.headers.get("gatehouse-ledger")).toBe(String(dispatched?.seq));
  expect(outcome).toMatchObject({ phase: "outcome", ref: dispatched?.seq, outcome: "succeeded" });
  const calls = await stage.entriesOf(response);
  expect(calls.map(({ phase, outcome }) => [phase, outcome])).toEqual([
    ["intent", "allowed"],
    ["outcome", "succeeded"],
  ]);
  expect(stage.text(dispatched, "input")).toContain("Good morning");
  expect(stage.text(calls[0], "input")).toBeUndefined();
});

describe("is refused before anything is dispatched", () => {
  const cases: [string, object, number, string][] = [
    ["without being stored", { store: false }, 400, "unsupported_parameter"],
    ["for an unknown model", { model: "nobody/knows" }, 404, "model_not_found"],
    ["for a forbidden model", { model: "up/never-1" }, 403, "model_forbidden"],
    ["after an unknown response", { previous_response_id: "resp_unknown" }, 404, "not_found"],
    ["with a flag that is none", { background: "yes" }, 422, "validation_failed"],
  ];
  test.each(cases)("%s", async (_, more, status, code) => {
    const before = stage.upstream.requests.length;
    const { response, body } = await dispatch(more);
    expect([response.status, body.error.code]).toEqual([status, code]);
    expect(await stage.entriesOf(response, "response.dispatch")).toEqual([]);
    expect(stage.upstream.requests.length).toBe(before);
  });
});

test("OpenAI's client follows a stream, and resumes it where it left off", async () => {
  const gate = Promise.withResolvers<void>();
  script(gate.promise);
  const { responses } = stage.client();
  const asked = { model: "up/first", input: "Good morning", background: true, stream: true } as const;
  const seen: OpenAI.Responses.ResponseStreamEvent[] = [];
  let id = "";
  for await (const event of await responses.create(asked)) {
    seen.push(event);
    if (event.type === "response.created") id = event.response.id;
    if (event.type === "response.output_text.delta") break;
  }
  gate.resolve();
  const { id: again, output_text: text } = await responses
    .stream({ response_id: id, starting_after: seen.at(-1)?.sequence_number ?? 0 })
    .on("event", (event) => seen.push(event))
    .finalResponse();
  expect([again, text]).toEqual([id, ANSWER]);
  expect(seen.map(({ sequence_number: number }) => number)).toEqual(seen.map((_, index) => index));
  expect(seen.at(-1)?.type).toBe("response.completed");
  // The events are the same after the response has ended.
  const later = await responses.retrieve(id, { stream: true });
  const all: typeof seen = [];
  for await (const event of later) all.push(event);
  expect(all).toEqual(seen);
});

test("a provider's failure is reported to readers, and ends the stream with an error", async () => {
  stage.upstream.script("first", { status: 400, message: "The tool has no name." });
  const { body } = await dispatch();
  const { status, output, error } = await ended(body.id);
  expect([status, output, error.code]).toEqual(["failed", [], "provider_refused"]);
  expect(error.message).toContain("The tool has no name.");
  const streamed = await stage
    .client()
    .responses.create({ model: "up/first", input: "x", background: true, stream: true });
  const types: string[] = [];
  const read = async () => {
    for await (const event of streamed) types.push(event.type);
  };
  await expect(read()).rejects.toMatchObject({ message: expect.stringContaining("The tool has no name.") });
  expect(types).toEqual(["response.created"]);
});

test("a stream that breaks in the middle fails, and reports that after the events already sent", async () => {
  const whole = responseOf([textItem(ANSWER)]);
  stage.upstream.script("first", { events: eventsOf(whole), cutAfter: 5 });
  const { response, bytes } = await stage.post(
    JSON.stringify({ model: "up/first", input: "x", background: true, stream: true }),
  );
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const events = [...bytes.toString().matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? ""));
  expect(events.at(-2)).toMatchObject({ type: "error", code: "provider_failed" });
  expect(events.at(-1)).toMatchObject({ type: "response.failed", response: { status: "failed" } });
  expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index));
});

test("a background response can continue a conversation at a provider that does not know it", async () => {
  script();
  const { body } = await dispatch({ input: "What is blue?" });
  await ended(body.id);
  const { body: next } = await dispatch({ previous_response_id: body.id, input: "And green?" });
  expect(await ended(next.id)).toMatchObject({ previous_response_id: body.id, status: "completed" });
  const sent = JSON.parse(String(stage.upstream.requests.at(-1)?.bytes));
  expect(sent.previous_response_id).toBeNull();
  expect(JSON.stringify(sent.input)).toContain("What is blue?");
  expect(JSON.stringify(sent.input)).toContain(ANSWER);
  const { body: items } = await stage.ask("GET", `/${next.id}/input_items`);
  expect(JSON.stringify(items.data)).toContain("What is blue?");
});

test("an unfinished response cannot be continued", async () => {
  script(new Promise(() => {}));
  const { body } = await dispatch();
  const answer = await dispatch({ previous_response_id: body.id });
  expect([answer.response.status, answer.body.error.param]).toEqual([422, "previous_response_id"]);
  await stage.ask("POST", `/${body.id}/cancel`);
});

test("nobody else reads, resumes, cancels or deletes it", async () => {
  script(new Promise(() => {}));
  const { body } = await dispatch({ stream: false });
  for (const token of [stage.gateway.admin, await stage.gateway.workspace("elsewhere")]) {
    for (const [method, path] of [
      ["GET", `/${body.id}`],
      ["GET", `/${body.id}?stream=true`],
      ["POST", `/${body.id}/cancel`],
      ["DELETE", `/${body.id}`],
    ] as const) {
      expect([path, (await stage.ask(method, path, token)).status]).toEqual([path, 404]);
    }
  }
  expect((await read(body.id)).status).not.toBe("cancelled");
  expect((await stage.ask("POST", `/${body.id}/cancel`)).body.status).toBe("cancelled");
});

test("only a response that was requested as a stream has events", async () => {
  script();
  const { body } = await dispatch();
  await ended(body.id);
  for (const [query, param] of [
    ["stream=true", "stream"],
    ["starting_after=3", "starting_after"],
  ]) {
    const { status, body: refused } = await stage.ask("GET", `/${body.id}?${query}`);
    expect([status, refused.error.code, refused.error.param]).toEqual([
      400,
      "unsupported_parameter",
      String(param),
    ]);
  }
});

test("deleting a response in progress ends it, and erases its texts and events", async () => {
  script(new Promise(() => {}));
  const asked = { model: "up/first", input: "a secret question", background: true, stream: true } as const;
  const stream = await stage.client(stage.gateway.admin).responses.create(asked);
  let id = "";
  for await (const event of stream) {
    if (event.type === "response.created") id = event.response.id;
    if (event.type === "response.output_text.delta") break;
  }
  const upstream = stage.upstream.requests.at(-1);
  const seq = await dispatchSeqOf(id);
  const refused = await stage.gateway.call("DELETE", `/v1/ledger/${seq}/payload`);
  expect([refused.status, refused.body.code]).toEqual([409, "task_unfinished"]);
  expect((await stage.ask("DELETE", `/${id}`, stage.gateway.admin)).status).toBe(200);
  expect((await stage.ask("GET", `/${id}`, stage.gateway.admin)).status).toBe(404);
  await until(() => upstream?.aborted === true);
  const file = ownConnection(stage.gateway.dataDir);
  const left = file
    .query<{ texts: number }, [string]>(
      `SELECT (SELECT COUNT(*) FROM response_events WHERE response_id = ?1) +
              (SELECT COUNT(*) FROM payloads WHERE instr(body, 'a secret question') > 0) AS texts`,
    )
    .get(id);
  expect(left?.texts).toBe(0);
});

test("a client that reads slowly gets no more of a text once it is erased", async () => {
  // The last event has all of them: more than the system buffers for a connection.
  const items = Array.from({ length: 4 }, (_, at) => textItem(`${"z".repeat(3_500_000)} mark ${at}`));
  const short = responseOf([]);
  const dones = items.map((item, at) => ({ type: "response.output_item.done", output_index: at, item }));
  const [begun] = eventsOf(short);
  const events = [begun, ...dones, { type: "response.completed", response: short }];
  stage.upstream.script("first", { events: events as object[] });
  const { bytes } = await stage.post(
    JSON.stringify({ model: "up/first", input: "x", background: true, stream: true }),
  );
  const [, id] = /"id":"(resp_[^"]+)"/.exec(bytes.toString()) ?? [];
  const { port, host } = new URL(stage.gateway.url);
  const socket = connect(Number(port), "127.0.0.1");
  let received = "";
  socket.on("data", (data) => {
    received += data;
    if (received.length === data.length) socket.pause();
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const head = `GET /v1/responses/${id}?stream=true&starting_after=4 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n`;
  socket.write(`${head}Authorization: Bearer ${stage.clerk}\r\n\r\n`);
  await until(() => received.length > 0);
  // By now, everything that the system accepts is on its way.
  await Bun.sleep(500);
  expect((await stage.ask("DELETE", `/${id}`)).status).toBe(200);
  socket.resume();
  await closed;
  expect(received).toContain("event: response.completed");
  expect(received.length).toBeGreaterThan(1_000_000);
  expect(received.includes(" mark 3")).toBe(false);
});

async function dispatchSeqOf(id: string): Promise<number> {
  const { body } = await stage.gateway.call(
    "GET",
    "/v1/ledger?action=response.dispatch&limit=200&order=desc",
  );
  const entry = body.data.find((each: LedgerRow) => each.phase === "intent" && each.detail?.response === id);
  return entry.seq;
}

test("a response is cancelled once, and its request to the provider is aborted", async () => {
  script(new Promise(() => {}));
  const sent = stage.upstream.requests.length;
  const { body } = await dispatch();
  await until(() => stage.upstream.requests.length > sent);
  const upstream = stage.upstream.requests.at(-1);
  for (const _ of [1, 2]) {
    const cancelled = await stage.ask("POST", `/${body.id}/cancel`);
    expect([cancelled.status, cancelled.body.status]).toEqual([200, "cancelled"]);
  }
  await until(() => upstream?.aborted === true);
  expect((await read(body.id)).status).toBe("cancelled");
});

test("a cancelled stream ends with an error, so that no client mistakes it for a whole answer", async () => {
  script(new Promise(() => {}));
  const { responses } = stage.client();
  const stream = await responses.create({ model: "up/first", input: "x", background: true, stream: true });
  const types: string[] = [];
  const read = async () => {
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === "response.created") await responses.cancel(event.response.id);
    }
  };
  await expect(read()).rejects.toMatchObject({ code: "cancelled" });
  expect(types.at(0)).toBe("response.created");
});

test.each(["queued", "in_progress", undefined])("an answer whose status is %p fails", async (status) => {
  const whole = responseOf([textItem(ANSWER)]);
  const events = eventsOf(whole).map((event) => {
    const isLast = (event as { type: string }).type === "response.completed";
    return isLast ? { ...event, response: { ...whole, status } } : event;
  });
  stage.upstream.script("first", { events });
  const { body } = await dispatch();
  expect(await ended(body.id)).toMatchObject({ status: "failed", error: { code: "provider_failed" } });
});

test("the first event of a stream leaves out long members, since many readers may wait for it", () => {
  const row = { id: "resp_1", model: "up/first", createdAt: 0 };
  const request = { instructions: "x".repeat(10_000), metadata: { a: "x".repeat(10_000) }, temperature: 0.5 };
  const created = createdResponse(request, row);
  expect(JSON.stringify(created).length).toBeLessThan(2_000);
  expect(created).toMatchObject({ id: "resp_1", status: "queued", temperature: 0.5 });
});

test("only a background response can be cancelled", async () => {
  const whole = responseOf([textItem("x")], { id: freshId() });
  stage.upstream.script("first", { response: whole });
  await stage.post(JSON.stringify({ model: "up/first", input: "x" }));
  const { status, body } = await stage.ask("POST", `/${whole.id}/cancel`);
  expect([status, body.error.code]).toEqual([400, "unsupported_parameter"]);
});
