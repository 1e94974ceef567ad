/** What the embedded model answers to clients, which send conversations and tools of their own. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type OpenAI from "openai";
import { openTranslationStage, type TranslationStage, USER } from "./translation-support.ts";

type Request = OpenAI.ChatCompletionCreateParamsNonStreaming;

let stage: TranslationStage;
beforeAll(async () => {
  stage = await openTranslationStage();
});
afterAll(() => stage.stop());

const MODEL = "builtin/extractive";

async function answer(request: Partial<Request>) {
  const { choices } = await stage.client.chat.completions.create({
    model: MODEL,
    messages: USER,
    ...request,
  });
  const [choice] = choices;
  return {
    text: choice?.message.content ?? "",
    finish: choice?.finish_reason,
    calls: (choice?.message.tool_calls ?? []).map((call) => call.type === "function" && call.function),
  };
}

function tool(name: string, required: readonly string[], properties: object) {
  return {
    type: "function" as const,
    function: { name, parameters: { type: "object", properties, required } },
  };
}

const TEXT = { type: "string" };
const REFUNDS = "Refunds are paid within 14 days. Shipping takes a week.";

const QUOTED: [where: string, messages: Request["messages"]][] = [
  [
    "its instructions",
    [
      { role: "system", content: `Answer from this.\n${REFUNDS}` },
      { role: "user", content: "When are refunds paid?" },
    ],
  ],
  [
    "an earlier message",
    [
      { role: "user", content: REFUNDS },
      { role: "assistant", content: "Noted." },
      { role: "user", content: "When are refunds paid?" },
    ],
  ],
  [
    "the question's own message",
    [{ role: "user", content: `${REFUNDS}\n\nQuestion: When are refunds paid?` }],
  ],
  [
    "a document in plain text",
    [
      {
        role: "user",
        content: [
          {
            type: "file",
            file: {
              filename: "terms.txt",
              file_data: `data:text/plain;base64,${Buffer.from(REFUNDS).toString("base64")}`,
            },
          },
          { type: "text", text: "When are refunds paid?" },
        ],
      },
    ],
  ],
];

test.each(QUOTED)("a conversation with the answer in %s is quoted", async (where, messages) => {
  const { text, finish } = await answer({ messages });
  expect(text).toContain("“Refunds are paid within 14 days.” [1]");
  expect(text).not.toContain("Shipping");
  if (where === "a document in plain text") expect(text).toContain("[1] terms.txt");
  expect(finish).toBe("stop");
});

test("a conversation without an answer is reported as one", async () => {
  const { text } = await answer({
    messages: [
      { role: "system", content: "Shipping takes a week." },
      { role: "user", content: "When are refunds paid?" },
    ],
  });
  expect(text).toContain("nothing else that was sent shares a word with your question");
  expect(text).not.toContain("Shipping");
});

test("only tools that search are called, because nothing judges what a client's other tools do", async () => {
  const tools = [
    tool("delete_everything", [], {}),
    tool("post_message", ["text"], { text: TEXT }),
    tool("search", ["query"], { query: TEXT }),
    tool("weather", ["town"], { town: TEXT }),
  ];
  const messages = [{ role: "user" as const, content: "When are refunds paid?" }];
  const { calls, finish } = await answer({ tools, messages });
  expect(calls).toEqual([{ name: "search", arguments: '{"query":"When are refunds paid?"}' }]);
  expect(finish).toBe("tool_calls");
  expect((await answer({ tools, messages, tool_choice: "none" })).calls).toEqual([]);
});

test("search results are quoted with their sources", async () => {
  const found = { results: [{ text: REFUNDS, title: "Terms", source_uri: "https://example.org/terms" }] };
  const called = { name: "search", arguments: '{"query":"x"}' };
  const { text } = await answer({
    tools: [tool("search", ["query"], { query: TEXT })],
    messages: [
      { role: "user", content: "When are refunds paid?" },
      { role: "assistant", tool_calls: [{ id: "call_1", type: "function", function: called }] },
      { role: "tool", tool_call_id: "call_1", content: JSON.stringify(found) },
    ],
  });
  expect(text).toContain("“Refunds are paid within 14 days.” [1]");
  expect(text).toContain("Terms — https://example.org/terms");
});

test("an answer is no longer than the client allows", async () => {
  const { text, finish } = await answer({ max_completion_tokens: 5 });
  expect([text.length, finish]).toEqual([20, "length"]);
});

test.each<[string, Partial<Request>, string]>([
  ["a stop sequence", { stop: ["x"] }, "stop"],
  ["structured output", { response_format: { type: "json_object" } }, "response_format"],
  [
    "an image",
    {
      messages: [
        {
          role: "user",
          content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
        },
      ],
    },
    "messages.0.content.0.image_url.url",
  ],
])("%s is refused, because it could not be obeyed", async (_, request, param) => {
  const refused = await stage.post("/v1/chat/completions", { model: MODEL, messages: USER, ...request });
  const { error } = JSON.parse(refused.text);
  expect([refused.status, error.code, error.param]).toEqual([400, "unsupported_parameter", param]);
});

test.each<[string, object]>([
  [
    "a required tool that is not a search",
    { tools: [tool("weather", ["town"], { town: TEXT })], tool_choice: "required" },
  ],
])("%s is refused", async (_, request) => {
  const refused = await stage.post("/v1/chat/completions", { model: MODEL, messages: USER, ...request });
  expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([400, "unsupported_parameter"]);
});

test("only a part of a conversation of megabytes is searched", async () => {
  const filler = "A long sentence about nothing at all. ".repeat(100_000);
  const messages = [{ role: "user" as const, content: `${filler}\n${REFUNDS}\nWhen are refunds paid?` }];
  const { text } = await answer({ messages });
  expect(text).toContain("builtin/extractive");
});

test("a document that is not base64 is refused", async () => {
  const file = { file_data: "data:text/plain;base64,%%%" };
  const messages = [{ role: "user", content: [{ type: "file", file }] }];
  const refused = await stage.post("/v1/chat/completions", { model: MODEL, messages });
  expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([422, "validation_failed"]);
});
