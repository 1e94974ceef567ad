/** What a provider of another dialect is sent for a chat completion, and what is refused before anything is sent. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { message } from "../messages-support.ts";
import { openTranslationStage, type TranslationStage, USER } from "./translation-support.ts";

const PNG = "iVBORw0KGgo=";
const SCHEMA = {
  ...{ type: "object", properties: { town: { type: "string" } }, required: ["town"] },
  additionalProperties: false,
};

let stage: TranslationStage;
beforeAll(async () => {
  stage = await openTranslationStage();
  stage.google.script("gemini-3-pro", { parts: [{ text: '{"town":"Bern"}' }] });
  const content = [{ type: "text", text: '{"town":"Bern"}' }];
  stage.anthropic.script("claude-sonnet-5", {
    message: message(content, { input_tokens: 1, output_tokens: 1 }),
  });
});
afterAll(() => stage.stop());

const MODELS = ["gemini/gemini-3-pro", "claude/claude-sonnet-5"] as const;

const saying = (part: object) => ({ messages: [{ role: "user", content: [part] }] });

/** The last request to a provider. */
function sent(model: string) {
  if (model.startsWith("gemini")) return stage.google.requests.at(-1)?.body;
  return JSON.parse(stage.anthropic.requests.at(-1)?.bytes.toString() ?? "");
}

function asked(): number {
  return stage.google.requests.length + stage.anthropic.requests.length;
}

test.each(MODELS)("an image, an address and a PDF reach %s", async (model) => {
  await stage.client.chat.completions.create({
    model,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What is this?" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
          { type: "image_url", image_url: { url: "https://example.org/a.png" } },
          { type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${PNG}` } },
        ],
      },
    ],
  });
  const body = JSON.stringify(sent(model));
  expect(body.split(PNG)).toHaveLength(3);
  expect(body).toContain("image/png");
  expect(body).toContain("application/pdf");
  expect(body).toContain("https://example.org/a.png");
});

test.each(MODELS)("structured output of %s is parsed by the client", async (model) => {
  const { choices } = await stage.client.chat.completions.parse({
    ...{ model, messages: USER },
    response_format: { type: "json_schema", json_schema: { name: "place", strict: true, schema: SCHEMA } },
  });
  expect<unknown>(choices[0]?.message.parsed).toEqual({ town: "Bern" });
  const body = sent(model);
  const schema = body.generationConfig?.responseJsonSchema ?? body.output_config?.format.schema;
  expect(schema).toMatchObject({ properties: { town: { type: "string" } }, required: ["town"] });
});

test.each(MODELS)("instructions, limits and the choice of tools reach %s", async (model) => {
  const tools = [
    { type: "function" as const, function: { name: "look", parameters: { type: "object", properties: {} } } },
  ];
  await stage.client.chat.completions.create({
    messages: [
      { role: "developer", content: "Be brief." },
      ...USER,
      { role: "system", content: "Now in French." },
    ],
    ...{ model, tools, tool_choice: "required", max_completion_tokens: 77, stop: ["END"] },
  });
  const { system, max_tokens, stop_sequences, tool_choice, systemInstruction, generationConfig, toolConfig } =
    sent(model);
  expect(JSON.stringify(systemInstruction ?? system)).toContain("Be brief.");
  expect(JSON.stringify(sent(model))).toContain("Now in French.");
  expect(generationConfig?.maxOutputTokens ?? max_tokens).toBe(77);
  expect(generationConfig?.stopSequences ?? stop_sequences).toEqual(["END"]);
  expect(toolConfig?.functionCallingConfig.mode ?? tool_choice.type).toBe(tool_choice ? "any" : "ANY");
});

test.each(MODELS)(
  "no header of the client reaches %s, except the Gatehouse instances on the way",
  async (model) => {
    await fetch(`${stage.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        ...{ authorization: `Bearer ${stage.clerk}`, "content-type": "application/json" },
        ...{ "x-client": "1", cookie: "a=b", "openai-organization": "org", "anthropic-beta": "beta-1" },
      },
      body: JSON.stringify({ model, messages: USER }),
    });
    const headers = (model.startsWith("gemini") ? stage.google : stage.anthropic).requests.at(-1)?.headers;
    for (const name of ["x-client", "cookie", "openai-organization", "anthropic-beta", "authorization"]) {
      expect([name, headers?.get(name) ?? null]).toEqual([name, null]);
    }
    expect(headers?.get("gatehouse-via")).toBeString();
  },
);

test.each<[string, string, object, string]>([
  ["an unknown field", "gemini/gemini-3-pro", { future: 1 }, "future"],
  ["a tool of OpenAI", "gemini/gemini-3-pro", { tools: [{ type: "web_search" }] }, "tools.0.type"],
  ["a seed for Anthropic", "claude/claude-sonnet-5", { seed: 7 }, "seed"],
  [
    "audio for Anthropic",
    "claude/claude-sonnet-5",
    saying({ type: "input_audio", input_audio: { format: "wav", data: "AAAA" } }),
    "messages.0.content.0.input_audio",
  ],
  [
    "a file of another type for Anthropic",
    "claude/claude-sonnet-5",
    saying({ type: "file", file: { file_data: "data:text/csv;base64,AAAA" } }),
    "messages.0.content.0.file.file_data",
  ],
  ["a temperature above Anthropic's", "claude/claude-sonnet-5", { temperature: 1.5 }, "temperature"],
  [
    "JSON without a schema for Anthropic",
    "claude/claude-sonnet-5",
    { response_format: { type: "json_object" } },
    "response_format",
  ],
])("%s is refused by name before anything is sent, and recorded", async (_, model, fields, param) => {
  const before = asked();
  const { status, headers, text } = await stage.post("/v1/chat/completions", {
    model,
    messages: USER,
    ...fields,
  });
  const { error } = JSON.parse(text);
  expect([status, error.code, error.param]).toEqual([400, "unsupported_parameter", param]);
  expect(headers.get("gatehouse-code")).toBe("unsupported_parameter");
  expect(asked()).toBe(before);
  const [entry, ...more] = await stage.lastEntries();
  expect(entry).toMatchObject({ outcome: "denied", code: "unsupported_parameter", model });
  expect(more).toEqual([]);
});

test("a tier's model that cannot take the request is skipped", async () => {
  stage.google.script("first", { parts: [{ text: "from the first" }] });
  stage.anthropic.script("second", {
    message: message([{ type: "text", text: "from the second" }], { input_tokens: 1, output_tokens: 1 }),
  });
  const send = (fields: object) =>
    stage.post("/v1/chat/completions", { model: "tier:2", messages: USER, ...fields });
  expect((await send({})).text).toContain("from the first");
  // Only Anthropic can be asked for one call at a time.
  expect((await send({ parallel_tool_calls: false })).text).toContain("from the second");
  expect((await stage.lastEntries()).map(({ model }) => model)).toEqual(["claude/second", "claude/second"]);
});
