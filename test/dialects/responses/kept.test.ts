/** What is kept of responses, and when it is read. */
import { afterAll, beforeAll, expect, test } from "bun:test";
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

const send = (body: object) => stage.post(JSON.stringify({ model: "up/first", input: "x", ...body }));

test("an item that an earlier request named by its id alone leads nowhere at another provider", async () => {
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
