/** `include` of OpenAI's clients, and the ids of items. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  callItem,
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

/** A response with these items. */
async function make(output: readonly object[], input: unknown = "x"): Promise<string> {
  const whole = responseOf(output);
  stage.upstream.script("first", { response: whole });
  expect((await stage.post(JSON.stringify({ model: "up/first", input }))).response.status).toBe(200);
  return String(whole.id);
}

const image = [{ role: "user", content: [{ type: "input_image", image_url: "data:image/png;base64,eA==" }] }];

test("values that the items have, or that concern no item of the response, are accepted by OpenAI's client", async () => {
  const sealed = { type: "reasoning", id: freshId("rs"), summary: [], encrypted_content: "sealed" };
  const id = await make([sealed, textItem("one")], image);
  const { responses } = stage.client();
  const include = ["reasoning.encrypted_content", "file_search_call.results"] as const;
  expect((await responses.retrieve(id, { include: [...include] })).id).toBe(id);
  const listed = await responses.inputItems.list(id, { include: ["message.input_image.image_url"] });
  expect(JSON.stringify(listed.data)).toContain("data:image/png");
  expect((await stage.ask("GET", `/${id}?include=${include[0]}&include=${include[1]}`)).status).toBe(200);
});

const REFUSED: [name: string, value: string, item: () => object][] = [
  ["that are unknown", "message.everything", () => textItem("one")],
  ["that were not stored", "message.output_text.logprobs", () => textItem("one")],
  [
    "that were not stored",
    "reasoning.encrypted_content",
    () => ({ type: "reasoning", id: freshId("rs"), summary: [] }),
  ],
  [
    "that were not stored",
    "web_search_call.action.sources",
    () => ({ type: "web_search_call", id: freshId("ws"), action: { type: "search", query: "x" } }),
  ],
];
test.each(REFUSED)("values %s are refused by name: %s", async (_, value, item) => {
  const id = await make([item()]);
  const accepted = "include[]=file_search_call.results";
  const { status, body } = await stage.ask("GET", `/${id}?${accepted}&include[]=${value}`);
  expect([status, body.error.code, body.error.param]).toEqual([400, "unsupported_parameter", "include.1"]);
});

test("items without an id are listed with an id that has the prefix of their type", async () => {
  const call = { ...callItem("weather", {}), id: undefined };
  const { call_id } = call as unknown as { call_id: string };
  const id = await make(
    [textItem("sunny")],
    [
      ...[
        { role: "user", content: "the weather?" },
        { type: "reasoning", summary: [], encrypted_content: "x" },
        call,
      ],
      { type: "function_call_output", call_id, output: "sunny" },
    ],
  );
  const { body } = await stage.ask("GET", `/${id}/input_items?order=asc`);
  const begin = body.data.map((item: { id: string }) => item.id.slice(0, item.id.indexOf("_")));
  expect(begin).toEqual(["msg", "rs", "fc", "fco"]);
});
