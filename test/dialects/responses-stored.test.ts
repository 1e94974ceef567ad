/** Stored responses: who owns them, and what becomes of them. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { tempDir } from "../support/process.ts";
import { until } from "../support/until.ts";
import {
  callItem,
  eventsOf,
  freshId,
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

/** A response with one message. */
async function make(token = stage.clerk, more: object = {}, headers: Record<string, string> = {}) {
  const item = freshId("msg");
  const whole = responseOf([textItem("the secret answer", item)]);
  stage.upstream.script("first", { response: whole });
  const asked = { model: "up/first", input: "the secret question", ...more };
  const { response } = await stage.post(JSON.stringify(asked), { token, headers });
  expect(response.status).toBe(200);
  return { id: String(whole.id), item, whole, entries: await stage.entriesOf(response) };
}

/** Makes a request that refers to what other callers have made. */
async function send(body: object, token = stage.clerk) {
  const answer = await stage.post(JSON.stringify({ model: "up/first", input: "x", ...body }), { token });
  return { ...answer, error: JSON.parse(answer.bytes.toString()).error };
}

describe("a response can be found only by its own workspace and agent:", () => {
  type Others = [name: string, maker: () => Promise<string>, reader: () => Promise<string>];
  const others: Others[] = [
    [
      "not by another workspace",
      async () => stage.gateway.admin,
      () => stage.gateway.workspace(freshId("ws").replace("_", "-")),
    ],
    ["not by another agent", async () => stage.clerk, agentToken],
    ["not by a token without an agent", async () => stage.clerk, async () => stage.gateway.admin],
    ["not by an agent, if no agent made it", async () => stage.gateway.admin, async () => stage.clerk],
  ];
  async function agentToken(): Promise<string> {
    const agent = freshId("agent").replace("_", "-");
    await stage.gateway.agent(agent);
    return stage.gateway.token({ agent });
  }

  test.each(others)("%s", async (_, maker, reader) => {
    const { id, item } = await make(await maker());
    const token = await reader();
    const before = stage.upstream.requests.length;
    for (const [method, path] of [
      ["GET", `/${id}`],
      ["DELETE", `/${id}`],
      ["GET", `/${id}/input_items`],
      ["POST", `/${id}/cancel`],
    ] as const) {
      const { status, body } = await stage.ask(method, path, token);
      expect([method, path, status, body.error.code]).toEqual([method, path, 404, "not_found"]);
      expect(JSON.stringify(body)).not.toContain("secret");
    }
    for (const body of [
      { previous_response_id: id },
      { input: [{ type: "item_reference", id: item }] },
      { input: [{ id: item }] },
      { input: [{ type: "reasoning", id: item, summary: [] }] },
    ]) {
      const { response, error } = await send(body, token);
      expect([response.status, error.code]).toEqual([404, "not_found"]);
    }
    expect(stage.upstream.requests.length).toBe(before);
    // Its own caller still has it.
    expect((await stage.ask("GET", `/${id}`, await maker())).status).toBe(200);
  });

  test("a token without an agent reads as the agent that it names", async () => {
    const { id, whole } = await make(stage.gateway.admin, {}, { "gatehouse-agent": "clerk" });
    expect((await stage.ask("GET", `/${id}`)).body).toEqual(whole);
    const named = { "gatehouse-agent": "clerk" };
    expect((await stage.ask("GET", `/${id}`, stage.gateway.admin, named)).body).toEqual(whole);
    expect((await stage.ask("GET", `/${id}`, stage.gateway.admin)).status).toBe(404);
  });

  test("an existing id is not given to another response", async () => {
    const { id, whole } = await make();
    const other = { ...responseOf([textItem("another answer")]), id };
    stage.upstream.script("first", { response: other });
    await send({}, stage.gateway.admin);
    expect((await stage.ask("GET", `/${id}`)).body).toEqual(whole);
    expect((await stage.ask("GET", `/${id}`, stage.gateway.admin)).status).toBe(404);
  });
});

test("OpenAI's client reads, lists and deletes a response, created whole or streamed", async () => {
  const { responses } = stage.client();
  for (const stream of [false, true]) {
    const whole = responseOf([textItem("Good evening")]);
    stage.upstream.script("first", stream ? { events: eventsOf(whole) } : { response: whole });
    const asked = { model: "up/first", input: "Good morning" };
    if (stream) await responses.stream(asked).finalResponse();
    else await responses.create(asked);
    const id = String(whole.id);
    expect(JSON.parse(JSON.stringify(await responses.retrieve(id)))).toMatchObject(whole);
    const { data } = await responses.inputItems.list(id);
    expect(data).toEqual([
      {
        ...{ id: expect.stringMatching(/^msg_/), type: "message", role: "user", status: "completed" },
        content: [{ type: "input_text", text: "Good morning" }],
      },
    ] as never);
    await responses.delete(id);
    expect(await responses.retrieve(id).catch(({ status }) => status)).toBe(404);
  }
});

test("with store: false nothing is kept", async () => {
  const { id, item } = await make(stage.clerk, { store: false });
  expect((await stage.ask("GET", `/${id}`)).status).toBe(404);
  expect((await send({ previous_response_id: id })).response.status).toBe(404);
  expect((await send({ input: [{ type: "item_reference", id: item }] })).response.status).toBe(404);
});

test("the provider that made a response gets its ids unchanged", async () => {
  const { id, item } = await make();
  const next = responseOf([textItem("next")]);
  stage.upstream.script("first", { response: next });
  const body = `{ "previous_response_id":"${id}" , "model":"up/first","input":[ {"type":"item_reference","id":"${item}"} ]}`;
  const { response } = await stage.post(body);
  expect(response.status).toBe(200);
  expect(stage.upstream.requests.at(-1)?.bytes.toString()).toBe(body.replace("up/first", "first"));
  // It also passes to a tier whose models belong to that provider.
  expect((await send({ model: "tier:1", previous_response_id: next.id })).response.status).toBe(200);
  const sent = JSON.parse(stage.upstream.requests.at(-1)?.bytes.toString() ?? "");
  expect(sent.previous_response_id).toBe(next.id);
});

test("another provider gets the conversation, without the ids of the first", async () => {
  const reasoning = { id: freshId("rs"), type: "reasoning", summary: [], encrypted_content: "sealed" };
  const call = callItem("weather", { city: "Bern" });
  const first = responseOf([
    reasoning,
    { id: freshId("ws"), type: "web_search_call", status: "completed" },
    call,
  ]);
  stage.upstream.script("first", { response: first });
  await send({ input: "The weather in Bern?" });
  const second = responseOf([textItem("It is sunny.")]);
  stage.upstream.script("first", { response: second });
  const { call_id: callId } = call as { call_id: string };
  const result = { type: "function_call_output", call_id: callId, output: "sunny" };
  await send({ input: [result], previous_response_id: first.id });
  stage.upstream.script("other", { response: responseOf([textItem("And in Basel, too.")]) });
  const { response } = await send({
    ...{ model: "second/other", input: "And in Basel?", previous_response_id: second.id, temperature: 1 },
  });
  expect(response.status).toBe(200);
  const sent = JSON.parse(stage.upstream.requests.at(-1)?.bytes.toString() ?? "");
  expect(sent).toEqual({
    ...{ model: "other", previous_response_id: null, temperature: 1 },
    input: [
      { type: "message", role: "user", content: "The weather in Bern?" },
      { type: "function_call", name: "weather", arguments: '{"city":"Bern"}', call_id: callId },
      result,
      {
        ...{ type: "message", role: "assistant" },
        content: [{ type: "output_text", text: "It is sunny.", annotations: [], logprobs: [] }],
      },
      { type: "message", role: "user", content: "And in Basel?" },
    ],
  });
  const listed = await stage.ask("GET", `/${second.id}/input_items?order=asc&limit=2`);
  expect(listed.body.data.map(({ type }: { type: string }) => type)).toEqual(["message", "reasoning"]);
  expect(listed.body.has_more).toBe(true);
  const rest = await stage.ask("GET", `/${second.id}/input_items?order=asc&after=${listed.body.last_id}`);
  expect(rest.body.data.map(({ type }: { type: string }) => type)).toEqual([
    "web_search_call",
    "function_call",
    "function_call_output",
  ]);
});

test("a tier's next provider gets the conversation if the first, which knows the ids, fails", async () => {
  const { id, item } = await make();
  stage.upstream.script("first", { status: 500 });
  stage.upstream.script("other", { response: responseOf([textItem("x")]) });
  const input = [
    { type: "item_reference", id: item },
    { role: "user", content: "again" },
  ];
  const { response } = await send({ model: "tier:3", previous_response_id: id, input });
  expect(response.headers.get("gatehouse-model")).toBe("second/other");
  const [to, then] = stage.upstream.requests.slice(-2).map(({ bytes }) => JSON.parse(bytes.toString()));
  expect([to.previous_response_id, to.input]).toEqual([id, input]);
  expect(then.previous_response_id).toBeNull();
  expect(then.input.map(({ role }: { role: string }) => role)).toEqual([
    "user",
    "assistant",
    "assistant",
    "user",
  ]);
  expect(JSON.stringify(then)).not.toContain(item);
});

test("the texts of a response and its request are erased together, by the ledger or by DELETE", async () => {
  const erase = [
    ({ entries }: Awaited<ReturnType<typeof make>>) =>
      stage.gateway.call("DELETE", `/v1/ledger/${entries[0]?.seq}/payload`),
    ({ id }: Awaited<ReturnType<typeof make>>) =>
      stage.ask("DELETE", `/${id}`, stage.gateway.admin, { "gatehouse-agent": "clerk" }),
  ];
  for (const each of erase) {
    const made = await make();
    const { id, entries } = made;
    const { status, headers } = await each(made);
    expect([200, 204]).toContain(status);
    expect([stage.text(entries[0], "input"), stage.text(entries[1], "output")]).toEqual([
      undefined,
      undefined,
    ]);
    expect((await stage.ask("GET", `/${id}`)).status).toBe(404);
    expect((await send({ previous_response_id: id })).response.status).toBe(404);
    const seq = headers.get("gatehouse-ledger");
    const { body } = await stage.gateway.call("GET", `/v1/ledger/${seq}`);
    const named = `${entries[0]?.seq}.input ${entries[1]?.seq}.output`;
    expect(body).toMatchObject({ action: "payload.erase", detail: { payloads: named } });
  }
});

test("if only a response's text is erased, the response is gone too", async () => {
  const { id, entries } = await make();
  await stage.gateway.call("DELETE", `/v1/ledger/${entries[1]?.seq}/payload`);
  expect((await stage.ask("GET", `/${id}`)).status).toBe(404);
  expect((await send({ previous_response_id: id })).response.status).toBe(404);
});

test("an agent deletes its response, but cannot erase the evidence", async () => {
  const { id, entries, item } = await make();
  const { status, body } = await stage.ask("DELETE", `/${id}`);
  expect([status, body]).toEqual([200, { id, object: "response", deleted: true }]);
  expect((await stage.ask("GET", `/${id}`)).status).toBe(404);
  expect((await send({ input: [{ type: "item_reference", id: item }] })).response.status).toBe(404);
  expect(stage.text(entries[1], "output")).toContain("the secret answer");
  const { body: page } = await stage.gateway.call(
    "GET",
    "/v1/ledger?action=response.delete&order=desc&limit=1",
  );
  expect(page.data[0]).toMatchObject({ agent: "clerk", detail: { target_seq: entries[0]?.seq } });
});

test("a conversation with an erased part cannot be continued elsewhere, and the refusal states the reason", async () => {
  const first = await make();
  const second = await make(stage.clerk, { previous_response_id: first.id });
  await stage.gateway.call("DELETE", `/v1/ledger/${first.entries[0]?.seq}/payload`);
  const { response, error } = await send({ model: "second/other", previous_response_id: second.id });
  expect([response.status, error.code, error.message]).toEqual([
    404,
    "not_found",
    expect.stringContaining(first.id),
  ]);
});

test("a refused or broken response is not stored", async () => {
  const whole = responseOf([textItem("one two")]);
  stage.upstream.script("first", { events: eventsOf(whole), cutAfter: 6 });
  await stage.post(JSON.stringify({ model: "up/first", input: "x", stream: true }));
  expect((await stage.ask("GET", `/${whole.id}`)).status).toBe(404);
});

test("a response that was not made in the background can be neither cancelled nor streamed again", async () => {
  const { id } = await make();
  for (const [method, path] of [
    ["POST", `/${id}/cancel`],
    ["GET", `/${id}?stream=true`],
  ] as const) {
    const { status, body } = await stage.ask(method, path);
    expect([status, body.error.code]).toEqual([400, "unsupported_parameter"]);
  }
});

test("a changed row does not lead to another caller's response", async () => {
  const own = await make(stage.gateway.admin);
  const { id } = await make();
  const write = ownConnection(stage.gateway.dataDir);
  const changes: [sql: string, values: (string | number | null)[]][] = [
    // Another's response becomes the clerk's.
    [
      "UPDATE responses SET agent_id = (SELECT agent_id FROM responses WHERE id = ?) WHERE id = ?",
      [id, own.id],
    ],
    // The clerk's row leads to another's entries.
    [
      "UPDATE responses SET request_seq = ?, outcome_seq = ? WHERE id = ?",
      [own.entries[0]?.seq ?? 0, own.entries[1]?.seq ?? 0, id],
    ],
  ];
  for (const [sql, values] of changes) {
    write.run(sql, values);
    for (const each of [own.id, id]) {
      const { status, body } = await stage.ask("GET", `/${each}`);
      if (status !== 404) expect(body.id).toBe(id);
      expect((await send({ previous_response_id: own.id })).response.status).toBe(404);
    }
  }
  expect((await stage.ask("GET", `/${id}`)).status).toBe(404);
});

test("a changed row does not lead an agent to the response of an earlier agent of the same name", async () => {
  const agent = freshId("agent").replace("_", "-");
  await stage.gateway.agent(agent);
  const { id, item } = await make(await stage.gateway.token({ agent }));
  await stage.gateway.call("DELETE", `/v1/agents/${agent}`);
  await stage.gateway.agent(agent);
  const token = await stage.gateway.token({ agent });
  const own = await make(token);
  ownConnection(stage.gateway.dataDir).run(
    "UPDATE responses SET agent_id = (SELECT agent_id FROM responses WHERE id = ?) WHERE id = ?",
    [own.id, id],
  );
  const before = stage.upstream.requests.length;
  for (const path of [`/${id}`, `/${id}/input_items`]) {
    const { status, body } = await stage.ask("GET", path, token);
    expect([path, status, JSON.stringify(body).includes("secret")]).toEqual([path, 404, false]);
  }
  for (const body of [{ previous_response_id: id }, { input: [{ type: "item_reference", id: item }] }]) {
    expect((await send(body, token)).response.status).toBe(404);
  }
  expect(stage.upstream.requests.length).toBe(before);
  expect((await stage.ask("GET", `/${own.id}`, token)).status).toBe(200);
});

test("a row with another id does not make that id the caller's own", async () => {
  const { id, item } = await make();
  const write = ownConnection(stage.gateway.dataDir);
  write.run("UPDATE responses SET id = 'resp_foreign' WHERE id = ?", [id]);
  write.run("UPDATE response_items SET id = 'msg_foreign', response_id = 'resp_foreign' WHERE id = ?", [
    item,
  ]);
  const before = stage.upstream.requests.length;
  expect((await stage.ask("GET", "/resp_foreign")).status).toBe(404);
  expect((await send({ previous_response_id: "resp_foreign" })).response.status).toBe(404);
  expect((await send({ input: [{ type: "item_reference", id: "msg_foreign" }] })).response.status).toBe(404);
  expect(stage.upstream.requests.length).toBe(before);
});

test("an answer is read, and continued by its provider, without reading its request, however long", async () => {
  const { id, whole, entries } = await make();
  ownConnection(stage.gateway.dataDir).run(
    "UPDATE payloads SET body = 'changed' WHERE seq = ? AND kind = 'input' AND workspace_id = 1",
    [entries[0]?.seq ?? 0],
  );
  expect((await stage.ask("GET", `/${id}`)).body).toEqual(whole);
  expect((await send({ previous_response_id: id })).response.status).toBe(200);
  expect((await send({ model: "tier:1", previous_response_id: id })).response.status).toBe(200);
  // If the request is read, it must be the signed one.
  expect((await stage.ask("GET", `/${id}/input_items`)).status).toBe(404);
  expect((await send({ model: "second/other", previous_response_id: id })).response.status).toBe(404);
});

test("any token of the same agent, or without an agent of the same workspace, can read a response with only models:call", async () => {
  const scopes = ["models:call"];
  for (const more of [{ agent: "clerk" }, {}]) {
    const { id, whole } = await make(await stage.gateway.token({ ...more, scopes }));
    const { status, body } = await stage.ask("GET", `/${id}`, await stage.gateway.token({ ...more, scopes }));
    expect([status, body]).toEqual([200, whole]);
  }
});

test("each read is recorded, with the response that was read", async () => {
  const { id, entries } = await make();
  const detail = { response: id, target_seq: entries[0]?.seq };
  for (const path of [`/${id}`, `/${id}/input_items`, `/${id}?stream=true`]) {
    const { headers } = await stage.ask("GET", path);
    const { body } = await stage.gateway.call("GET", `/v1/ledger/${headers.get("gatehouse-ledger")}`);
    expect([path, body.action, body.agent]).toEqual([path, "response.read", "clerk"]);
    expect(body.detail).toMatchObject(detail);
  }
});

test("a response whose outcome cannot be written is withheld, and is not stored when the outcome is written late", async () => {
  const held = Promise.withResolvers<void>();
  const whole = responseOf([textItem("almost")]);
  stage.upstream.script("first", { events: eventsOf(whole), gate: held.promise });
  const request = { model: "up/first", input: "x", stream: true as const };
  const { data, response } = await stage.client().responses.create(request).withResponse();
  const file = new Database(databasePath(stage.gateway.dataDir));
  const types: string[] = [];
  let isHeld = false;
  try {
    for await (const event of data) {
      types.push(event.type);
      if (event.type !== "response.output_item.done") continue;
      file.run("BEGIN IMMEDIATE");
      isHeld = true;
      held.resolve();
    }
  } catch (error) {
    expect(error).toMatchObject({ code: "ledger_unavailable" });
  } finally {
    if (isHeld) file.run("ROLLBACK");
    file.close();
  }
  expect([isHeld, types.at(-1)]).toEqual([true, "response.output_item.done"]);
  await until(async () => (await stage.entriesOf(response)).length === 2);
  expect((await stage.entriesOf(response))[1]).toMatchObject({ outcome: "succeeded" });
  expect((await stage.ask("GET", `/${whole.id}`)).status).toBe(404);
});

test("responses exist after a restart, and can be continued", async () => {
  const { path: dataDir, remove } = tempDir();
  try {
    const before = await openResponsesStage({ dataDir });
    const whole = responseOf([textItem("x")]);
    before.upstream.script("first", { response: whole });
    await before.post(JSON.stringify({ model: "up/first", input: "x" }));
    await before.gateway.stop();
    const after = await startGateway({ dataDir });
    const token = before.clerk;
    expect((await after.call("GET", `/v1/responses/${whole.id}`, { token })).body).toEqual(whole);
    const next = responseOf([textItem("y")]);
    before.upstream.script("first", { response: next });
    const body = { model: "up/first", input: "y", previous_response_id: whole.id };
    expect((await after.call("POST", "/v1/responses", { token, body })).body).toEqual(next);
    await after.stop();
    await before.upstream.close();
  } finally {
    remove();
  }
});

test("a response expires with its payloads", async () => {
  const { path: dataDir, remove } = tempDir();
  const begun = new FakeClock();
  const rows = () =>
    ownConnection(dataDir)
      .query<{ id: string }, []>("SELECT id FROM responses UNION ALL SELECT id FROM response_items")
      .all();
  try {
    const before = await openResponsesStage({ clock: begun, dataDir });
    const whole = responseOf([textItem("x")]);
    before.upstream.script("first", { response: whole });
    await before.post(JSON.stringify({ model: "up/first", input: "x" }));
    expect(rows()).toHaveLength(2);
    await before.gateway.stop();
    const clock = new FakeClock(begun.now() + 400 * 86_400_000);
    const after = await startGateway({ clock, dataDir });
    await until(() => rows().length === 0);
    await after.stop();
    await before.upstream.close();
  } finally {
    remove();
  }
});
