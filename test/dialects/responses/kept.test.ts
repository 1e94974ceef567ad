/** What is stored of responses, and when it is read. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createLog } from "../../../src/base/log.ts";
import { FakeClock } from "../../support/clock.ts";
import {
  eventsOf,
  freshId,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "../responses-support.ts";

const logged: string[] = [];
let stage: ResponsesStage;
beforeAll(async () => {
  stage = await openResponsesStage({ log: createLog("warn", new FakeClock(), (line) => logged.push(line)) });
});
afterAll(() => stage.stop());

const send = (body: object) => stage.post(JSON.stringify({ model: "up/first", input: "x", ...body }));

test("an item that an earlier request named only by its id leads nowhere at another provider", async () => {
  const reasoning = { type: "reasoning", id: freshId("rs"), summary: [] };
  const thought = { ...reasoning, summary: [{ type: "summary_text", text: "the first thought" }] };
  const first = responseOf([thought, textItem("one")]);
  stage.upstream.script("first", { response: first });
  expect((await send({})).response.status).toBe(200);
  const second = responseOf([textItem("two")]);
  stage.upstream.script("first", { response: second });
  const input = [reasoning, { role: "user", content: "again" }];
  expect((await send({ input })).response.status).toBe(200);
  stage.upstream.script("other", { response: responseOf([textItem("three")]) });
  const next = await send({ model: "second/other", previous_response_id: second.id });
  expect(next.response.status).toBe(200);
  expect(stage.upstream.requests.at(-1)?.bytes.toString()).not.toContain(reasoning.id);
  const listed = await stage.ask("GET", `/${second.id}/input_items?order=asc`);
  expect(listed.body.data[0]).toEqual(thought);
});

/** A streamed response, with more events before its last one. */
async function stream(whole: Record<string, unknown>, more: object[], last: object = {}) {
  const events = eventsOf(whole);
  const end = { ...events.at(-1), ...last };
  stage.upstream.script("first", { events: [...events.slice(0, -1), ...more, end] });
  const { response } = await send({ stream: true });
  return (await stage.entriesOf(response)).at(-1);
}

const NOT_MERGED: [name: string, event: object][] = [
  [
    "an image in part",
    { type: "response.image_generation_call.partial_image", output_index: 0, partial_image_b64: "eA==" },
  ],
  ["sound", { type: "response.output_audio.delta", delta: "eA==" }],
  ["a delta of an unknown kind", { type: "response.novelty.delta", output_index: 0, delta: "x" }],
];
test.each(NOT_MERGED)("a streamed response with %s is kept", async (_, event) => {
  const whole = responseOf([textItem("one two")]);
  const outcome = await stream(whole, [event]);
  expect(stage.text(outcome, "output")).toContain(JSON.stringify(event));
  expect((await stage.ask("GET", `/${whole.id}`)).body).toEqual(whole);
  stage.upstream.script("other", { response: responseOf([textItem("x")]) });
  const next = await send({ model: "second/other", previous_response_id: whole.id });
  expect(next.response.status).toBe(200);
  expect(stage.upstream.requests.at(-1)?.bytes.toString()).toContain("one two");
});

test("a streamed patch is put together", async () => {
  const call = { type: "apply_patch_call", id: freshId("apc"), call_id: "call_1", status: "completed" };
  const patch = { ...call, operation: { type: "update_file", path: "a", diff: "+x" } };
  const bare = { ...call, operation: { type: "update_file", path: "a", diff: "" } };
  const whole = responseOf([patch]);
  const events = eventsOf({ ...whole, output: [] });
  const at = { output_index: 0, item_id: call.id };
  const deltas = ["+", "x"].map((delta) => ({
    ...{ type: "response.apply_patch_call_operation_diff.delta", ...at, delta },
  }));
  const added = { type: "response.output_item.added", output_index: 0, item: bare };
  stage.upstream.script("first", { events: [...events.slice(0, 1), added, ...deltas, ...events.slice(-1)] });
  const { response } = await send({ stream: true });
  const outcome = (await stage.entriesOf(response)).at(-1);
  expect(JSON.parse(stage.text(outcome, "output") ?? "").output).toEqual([patch]);
});

test("a response that cannot be stored is logged", async () => {
  const whole = responseOf([textItem("one two")]);
  await stream(whole, [{ type: "response.novelty.delta", delta: "x" }], {
    response: { ...whole, output: [] },
  });
  expect((await stage.ask("GET", `/${whole.id}`)).status).toBe(404);
  expect(logged.filter((line) => line.includes("a response is not stored"))).toHaveLength(1);
});

test.each([false, true])(
  "what a call refers to is read only if the call may be made (stream: %p)",
  async (stream) => {
    const body = { previous_response_id: "resp_unknown", stream };
    const codeOf = async (more: object) => {
      const { response } = await send({ ...body, ...more });
      return [response.status, response.headers.get("gatehouse-code")];
    };
    expect(await codeOf({ model: "up/never" })).toEqual([403, "model_forbidden"]);
    expect(await codeOf({ model: "nobody/x" })).toEqual([404, "model_not_found"]);
    await stage.gateway.call("POST", "/v1/agents/clerk/stop");
    expect(await codeOf({})).toEqual([409, "agent_stopped"]);
    await stage.gateway.call("POST", "/v1/agents/clerk/resume");
    expect(await codeOf({})).toEqual([404, "not_found"]);
  },
);
