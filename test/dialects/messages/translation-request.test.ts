/** Requests of Messages for providers of other kinds. */
import { expect, test } from "bun:test";
import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { Problem } from "../../../src/base/errors.ts";
import { MESSAGES_TRANSLATION } from "../../../src/dialects/messages/translation/translation.ts";
import { packSignature } from "../../../src/dialects/translation/signatures.ts";
import type { TranslationTarget } from "../../../src/dialects/translation/translation.ts";

const OPENAI: TranslationTarget = {
  ...{ provider: "work", kind: "openai" },
  supportedUrls: { "image/*": [/^https?:\/\/.*$/], "application/pdf": [/^https?:\/\/.*$/] },
};
const GOOGLE: TranslationTarget = {
  ...{ provider: "gem", kind: "google" },
  supportedUrls: { "image/png": [/^https:\/\/.*$/] },
};
const COMPATIBLE: TranslationTarget = { provider: "up", kind: "openai-compatible", supportedUrls: {} };

const USER = { role: "user", content: "Hello" };
const ASK = { model: "m", max_tokens: 1_000, messages: [USER] };
const TOOL = { name: "weather", input_schema: { type: "object" } };
const CALL = { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Paris" } };
const CALLED = { role: "assistant", content: [CALL] };

function call(request: object, target: TranslationTarget = COMPATIBLE): LanguageModelV4CallOptions {
  return MESSAGES_TRANSLATION.options({ ...ASK, ...request }, target);
}

function refusal(request: object, target?: TranslationTarget): string {
  try {
    call(request, target);
  } catch (error) {
    if (error instanceof Problem) return `${error.code} ${error.errors?.[0]?.path}`;
    throw error;
  }
  return "none";
}

/** A user's message with these blocks. */
function saying(...content: object[]): object {
  return { messages: [{ role: "user", content }] };
}

/** A tool's result with this content, after its call. */
function resulting(content: unknown, more: object = {}): object {
  const result = { type: "tool_result", tool_use_id: "toolu_1", content, ...more };
  return { messages: [USER, CALLED, { role: "user", content: [result] }] };
}

const PNG = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };
const UNSUPPORTED = "unsupported_parameter";
const INVALID = "validation_failed";

test("each field that would not reach another provider is refused by path", () => {
  const document = (source: object, more: object = {}) => ({ type: "document", source, ...more });
  const text = { type: "text", media_type: "text/plain", data: "A text" };
  const cases: readonly (readonly [object, string])[] = [
    [{ future: 1 }, "/future"],
    [{ container: "c_1" }, "/container"],
    [{ mcp_servers: [] }, "/mcp_servers"],
    [{ inference_geo: "eu" }, "/inference_geo"],
    [{ thinking: { type: "between_tools" } }, "/thinking/type"],
    [{ thinking: { type: "adaptive", budget_tokens: 1 } }, "/thinking/budget_tokens"],
    [{ thinking: { type: "adaptive", display: "updates" } }, "/thinking/display"],
    [{ output_config: { task_budget: {} } }, "/output_config/task_budget"],
    [{ output_config: { format: { type: "grammar" } } }, "/output_config/format/type"],
    [{ metadata: { team: "x" } }, "/metadata/team"],
    [
      { context_management: { edits: [{ type: "clear_tool_uses_20250919" }] } },
      "/context_management/edits/0",
    ],
    [
      { context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all", x: 1 }] } },
      "/context_management/edits/0",
    ],
    [{ tools: [TOOL, { type: "web_search_20260318", name: "web_search" }] }, "/tools/1/type"],
    [{ tools: [{ ...TOOL, input_examples: [{}] }] }, "/tools/0/input_examples"],
    [{ tools: [{ ...TOOL, allowed_callers: ["code_execution_20260120"] }] }, "/tools/0/allowed_callers"],
    [{ tool_choice: { type: "auto", future: true } }, "/tool_choice/future"],
    [{ messages: [{ ...USER, name: "Ann" }] }, "/messages/0/name"],
    [{ messages: [{ ...USER, output_config: {} }] }, "/messages/0/output_config"],
    [{ messages: [USER, { role: "assistant", content: "So" }] }, "/messages/1"],
    [saying({ type: "text", text: "a", future: 1 }), "/messages/0/content/0/future"],
    [saying({ type: "search_result", source: "a" }), "/messages/0/content/0/type"],
    [saying({ type: "container_upload", file_id: "f" }), "/messages/0/content/0/type"],
    [saying({ type: "image", source: { type: "file", file_id: "f" } }), "/messages/0/content/0/source/type"],
    [
      saying({ type: "image", source: { type: "url", url: "https://a/b.png" } }),
      "/messages/0/content/0/source/url",
    ],
    [saying(document({ type: "file", file_id: "f" })), "/messages/0/content/0/source/type"],
    [saying(document({ type: "url", url: "https://a/b.pdf" })), "/messages/0/content/0/source/url"],
    [saying(document(text, { citations: { enabled: true } })), "/messages/0/content/0/citations/enabled"],
    [
      { messages: [USER, { role: "assistant", content: [{ type: "server_tool_use" }] }, USER] },
      "/messages/1/content/0/type",
    ],
    [
      { messages: [USER, { role: "assistant", content: [{ ...CALL, caller: { type: "code" } }] }, USER] },
      "/messages/1/content/0/caller/type",
    ],
    [resulting([{ type: "image", source: PNG }], { is_error: true }), "/messages/2/content/0/is_error"],
    [resulting([], { toolset_name: "browser" }), "/messages/2/content/0/toolset_name"],
    [{ system: [{ type: "image", source: PNG }] }, "/system/0/type"],
  ];
  for (const [request, path] of cases) expect(refusal(request)).toBe(`${UNSUPPORTED} ${path}`);
});

test("an invalid Messages request is refused by path", () => {
  const cases: readonly (readonly [object, string])[] = [
    [{ max_tokens: undefined }, "/max_tokens"],
    [{ max_tokens: 0 }, "/max_tokens"],
    [{ max_tokens: "9" }, "/max_tokens"],
    [{ messages: undefined }, "/messages"],
    [{ messages: [] }, "/messages"],
    [{ messages: [{ role: "tool", content: "x" }] }, "/messages/0/role"],
    [{ messages: [{ role: "user" }] }, "/messages/0/content"],
    [{ messages: [{ role: "user", content: [] }] }, "/messages/0/content"],
    [{ messages: [{ role: "user", content: [7] }] }, "/messages/0/content/0"],
    [saying({ type: "text", text: 7 }), "/messages/0/content/0/text"],
    [
      saying({ type: "image", source: { ...PNG, media_type: "text/html" } }),
      "/messages/0/content/0/source/media_type",
    ],
    [
      saying({ type: "image", source: { ...PNG, data: "file-of-another-tenant" } }),
      "/messages/0/content/0/source/data",
    ],
    [
      saying({ type: "tool_result", tool_use_id: "toolu_9", content: "x" }),
      "/messages/0/content/0/tool_use_id",
    ],
    [
      {
        messages: [
          USER,
          CALLED,
          {
            role: "user",
            content: [
              { type: "text", text: "So:" },
              { type: "tool_result", tool_use_id: "toolu_1" },
            ],
          },
        ],
      },
      "/messages/2/content/1",
    ],
    [{ temperature: "hot" }, "/temperature"],
    [{ stop_sequences: ["a", 7] }, "/stop_sequences/1"],
    [{ output_config: { effort: "extreme" } }, "/output_config/effort"],
    [{ thinking: { type: "enabled" } }, "/thinking/budget_tokens"],
    [{ tools: [{ name: "x" }] }, "/tools/0/input_schema"],
    [{ tools: {} }, "/tools"],
    [{ tool_choice: { type: "tool" } }, "/tool_choice/name"],
    [{ tool_choice: { type: "maybe" } }, "/tool_choice/type"],
  ];
  for (const [request, path] of cases) expect(refusal(request)).toBe(`${INVALID} ${path}`);
});

test("hints that do not affect the answer, and members that are null, are left out", () => {
  const cached = { cache_control: { type: "ephemeral" } };
  const hints = {
    ...{ ...cached, service_tier: "auto", speed: "fast", stream: true, container: null, temperature: null },
    context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
    tools: [{ ...TOOL, ...cached, type: "custom", eager_input_streaming: true, defer_loading: false }],
    messages: [{ role: "user", content: [{ type: "text", text: "Hello", ...cached, citations: null }] }],
  };
  expect(call(hints)).toEqual({
    prompt: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
    maxOutputTokens: 1_000,
    tools: [{ type: "function", name: "weather", inputSchema: { type: "object" } }],
    providerOptions: { openaiCompatible: {} },
  });
});

test("sampling, stop sequences, structured output, tools and tool choice", () => {
  const schema = { type: "object", properties: { city: { type: "string" } } } as const;
  const request = {
    ...{ system: "Be brief.", temperature: 0.5, top_p: 0.9, top_k: 5, stop_sequences: ["END"] },
    output_config: { format: { type: "json_schema", schema } },
    tools: [{ ...TOOL, description: "The weather", strict: true }],
    tool_choice: { type: "tool", name: "weather" },
  };
  expect(call(request, GOOGLE)).toEqual({
    prompt: [
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Hello" }] },
    ],
    ...{ maxOutputTokens: 1_000, temperature: 0.5, topP: 0.9, topK: 5, stopSequences: ["END"] },
    responseFormat: { type: "json", schema },
    tools: [
      {
        ...{ type: "function", name: "weather", description: "The weather", strict: true },
        inputSchema: { type: "object" },
      },
    ],
    toolChoice: { type: "tool", toolName: "weather" },
  });
  expect(call({ output_format: { type: "json_schema", schema } }).responseFormat).toEqual({
    type: "json",
    schema,
  });
  const choices = ["auto", "any", "none"].map((type) => call({ tool_choice: { type } }).toolChoice?.type);
  expect(choices).toEqual(["auto", "required", "none"]);
});

test("one tool at a time is requested if a field for it exists, and refused otherwise", () => {
  const request = { tools: [TOOL], tool_choice: { type: "auto", disable_parallel_tool_use: true } };
  expect(call(request, OPENAI).providerOptions?.openai?.parallelToolCalls).toBe(false);
  expect(call(request).providerOptions?.up).toEqual({ parallel_tool_calls: false });
  const builtin = { provider: "builtin", kind: "builtin", supportedUrls: {} } as const;
  for (const target of [GOOGLE, builtin]) {
    expect(refusal(request, target)).toBe(`${UNSUPPORTED} /tool_choice/disable_parallel_tool_use`);
  }
});

test("thinking becomes the requested effort, or the effort with the nearest share of the answer", () => {
  const efforts: readonly (readonly [object, string | undefined])[] = [
    [{}, undefined],
    [{ thinking: { type: "adaptive" } }, undefined],
    [{ thinking: { type: "disabled" } }, "none"],
    [{ thinking: { type: "disabled" }, output_config: { effort: "high" } }, "none"],
    [{ output_config: { effort: "low" } }, "low"],
    [{ thinking: { type: "adaptive" }, output_config: { effort: "max" } }, "max"],
    [{ thinking: { type: "enabled", budget_tokens: 10 } }, "minimal"],
    [{ thinking: { type: "enabled", budget_tokens: 150 } }, "low"],
    [{ thinking: { type: "enabled", budget_tokens: 300 } }, "medium"],
    [{ thinking: { type: "enabled", budget_tokens: 600 } }, "high"],
    [{ thinking: { type: "enabled", budget_tokens: 890 } }, "xhigh"],
    [{ thinking: { type: "enabled", budget_tokens: 999 } }, "max"],
  ];
  for (const [request, effort] of efforts) expect(call(request).reasoning as string).toBe(effort as string);
});

test("thoughts are requested in each provider's way, unless they are to be omitted", () => {
  const thinking = { thinking: { type: "adaptive" } };
  const omitted = { thinking: { type: "adaptive", display: "omitted" } };
  expect(call(thinking, GOOGLE).providerOptions).toEqual({
    google: { thinkingConfig: { includeThoughts: true } },
  });
  expect(call(omitted, GOOGLE).providerOptions).toBeUndefined();
  expect(call({}, GOOGLE).providerOptions).toBeUndefined();
  expect(call(thinking, OPENAI).providerOptions?.openai).toEqual({ store: false });
  expect(call(omitted, OPENAI).providerOptions?.openai).toEqual({ store: false, reasoningSummary: null });
});

test("a long user_id is sent as its hash, and only if a field for it exists", () => {
  const user = (target: TranslationTarget, user_id: string) =>
    call({ metadata: { user_id } }, target).providerOptions;
  expect(user(COMPATIBLE, "ann")?.openaiCompatible).toEqual({ user: "ann" });
  const hash = String(user(OPENAI, "x".repeat(150))?.openai?.user);
  expect(hash).toMatch(/^[0-9a-f]{64}$/);
  expect(user(OPENAI, "x".repeat(150))?.openai?.user).toBe(hash);
  expect(user(OPENAI, `${"x".repeat(149)}y`)?.openai?.user).not.toBe(hash);
  expect(user(GOOGLE, "ann")).toBeUndefined();
});

test("images and documents reach the provider as files and texts", () => {
  const pdf = { type: "base64", media_type: "application/pdf", data: "JVBERi0=" };
  const text = { type: "text", media_type: "text/plain", data: "A text" };
  const nested = {
    type: "content",
    content: [
      { type: "text", text: "b" },
      { type: "image", source: PNG },
    ],
  };
  const request = saying(
    { type: "image", source: PNG },
    { type: "document", source: pdf, title: "Report", context: "Of May", citations: { enabled: false } },
    { type: "document", source: text },
    { type: "document", source: { type: "content", content: "a" } },
    { type: "document", source: nested },
    { type: "image", source: { type: "url", url: "https://example.org/a.png" } },
  );
  const image = { type: "file", mediaType: "image/png", data: { type: "data", data: PNG.data } };
  expect(call(request, GOOGLE).prompt[0]?.content as unknown).toEqual([
    image,
    { type: "text", text: "About the next document:\nTitle: Report\nContext: Of May" },
    { type: "file", mediaType: "application/pdf", data: { type: "data", data: "JVBERi0=" } },
    { type: "text", text: "A text" },
    { type: "text", text: "a" },
    { type: "text", text: "b" },
    image,
    {
      type: "file",
      mediaType: "image/png",
      data: { type: "url", url: new URL("https://example.org/a.png") },
    },
  ]);
});

test("no address is sent that would be read with the rights of the provider's account, or by its package", () => {
  const image = (url: string) => ({ type: "image", source: { type: "url", url } });
  const everything: TranslationTarget = { ...GOOGLE, supportedUrls: { "image/*": [/.*/] } };
  for (const url of [
    "https://generativelanguage.googleapis.com/v1beta/files/abc",
    "https://storage.googleapis.com/bucket/a.png",
    "s3://bucket/a.png",
    "gs://bucket/a.png",
    "file:///etc/passwd",
    "no address",
  ]) {
    expect(refusal(saying(image(url)), everything)).toBe(`${UNSUPPORTED} /messages/0/content/0/source/url`);
  }
  expect(refusal(saying(image("https://example.org/a.png")), everything)).toBe("none");
  const result = resulting([image("https://example.org/a.png")]);
  expect(refusal(result, everything)).toBe(`${UNSUPPORTED} /messages/2/content/0/content/0/source/url`);
  expect(refusal(result, OPENAI)).toBe("none");
});

test("tool results: texts, files, errors and no results", () => {
  const output = (content: unknown, more?: object) => {
    const part = call(resulting(content, more)).prompt.at(-1)?.content[0];
    return typeof part === "object" && part.type === "tool-result" ? (part.output as unknown) : undefined;
  };
  const texts = [
    { type: "text", text: "a" },
    { type: "text", text: "b" },
  ];
  expect(output(undefined)).toEqual({ type: "text", value: "" });
  expect(output("18 °C")).toEqual({ type: "text", value: "18 °C" });
  expect(output([texts[0]])).toEqual({ type: "text", value: "a" });
  expect(output(texts)).toEqual({ type: "content", value: texts });
  expect(output(texts, { is_error: true })).toEqual({ type: "error-text", value: "a\nb" });
  expect(output("x", { is_error: false })).toEqual({ type: "text", value: "x" });
  const file = { type: "file", mediaType: "image/png", data: { type: "data", data: PNG.data } };
  expect(output([{ type: "image", source: PNG }])).toEqual({ type: "content", value: [file] });
});

test("results are in a separate message before the user's own content", () => {
  const second = { ...CALL, id: "toolu_2", name: "time" };
  const messages = [
    USER,
    { role: "assistant", content: [{ type: "text", text: "Let me see." }, CALL, second] },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "toolu_2", content: "noon" },
        { type: "tool_result", tool_use_id: "toolu_1", content: "rain" },
        { type: "text", text: "And tomorrow?" },
      ],
    },
  ];
  expect(call({ messages }).prompt.slice(1)).toEqual([
    {
      role: "assistant",
      content: [
        { type: "text", text: "Let me see." },
        { type: "tool-call", toolCallId: "toolu_1", toolName: "weather", input: { city: "Paris" } },
        { type: "tool-call", toolCallId: "toolu_2", toolName: "time", input: { city: "Paris" } },
      ],
    },
    {
      role: "tool",
      content: [
        {
          type: "tool-result",
          toolCallId: "toolu_2",
          toolName: "time",
          output: { type: "text", value: "noon" },
        },
        {
          type: "tool-result",
          toolCallId: "toolu_1",
          toolName: "weather",
          output: { type: "text", value: "rain" },
        },
      ],
    },
    { role: "user", content: [{ type: "text", text: "And tomorrow?" }] },
  ]);
});

test("thoughts are returned to the kind of provider that signed them, and to no other", () => {
  const thinking = (signature: string) => ({ type: "thinking", thinking: "Hm.", signature });
  const assistant = (...content: object[]) => ({ messages: [USER, { role: "assistant", content }, USER] });
  const text = { type: "text", text: "Yes" };
  const own = thinking(packSignature(GOOGLE, { google: { thoughtSignature: "sig" } }));
  const foreign = thinking(packSignature(OPENAI, { openai: { reasoningEncryptedContent: "x" } }));
  const anthropic = thinking("EqQBCkYIBRgC");
  const redacted = { type: "redacted_thinking", data: "abc" };
  const { prompt } = call(assistant(own, foreign, anthropic, redacted, text), GOOGLE);
  expect(prompt[1]?.content as unknown).toEqual([
    { type: "reasoning", text: "Hm.", providerOptions: { google: { thoughtSignature: "sig" } } },
    { type: "text", text: "Yes" },
  ]);
  // Nothing is left of it, and some providers refuse an empty message.
  expect(call(assistant(foreign), GOOGLE).prompt.map(({ role }) => role)).toEqual(["user", "user"]);
});

test("a signature of a tool call returns to the call, wherever its thoughts are", () => {
  const signature = packSignature(GOOGLE, { google: { thoughtSignature: "sig" } }, "toolu_1");
  const signed = { type: "thinking", thinking: "", signature };
  const part = {
    ...{ type: "tool-call", toolCallId: "toolu_1", toolName: "weather", input: { city: "Paris" } },
    providerOptions: { google: { thoughtSignature: "sig" } },
  };
  for (const content of [
    [signed, CALL],
    [CALL, signed],
  ]) {
    const result = { type: "tool_result", tool_use_id: "toolu_1", content: "rain" };
    const messages = [USER, { role: "assistant", content }, { role: "user", content: [result] }];
    expect(call({ messages }, GOOGLE).prompt[1]?.content as unknown).toEqual([part]);
    expect(call({ messages }).prompt[1]?.content as unknown).toEqual([
      { ...part, providerOptions: undefined },
    ]);
  }
});

/** What Claude Code 2.1.330 sends, with its texts shortened. */
const CLAUDE_CODE = {
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>\nNo attribution.\n</system-reminder>" },
        { type: "text", text: "Say hi with the tool" },
      ],
    },
    { role: "system", content: "# Environment\nLinux", output_config: { effort: "medium" } },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "", signature: "EqQBCkYIBRgC" },
        { type: "tool_use", id: "toolu_01abc", name: "Bash", input: { command: "echo hi" } },
      ],
    },
    {
      role: "user",
      content: [
        {
          ...{ tool_use_id: "toolu_01abc", type: "tool_result", content: "hi", is_error: false },
          cache_control: { type: "ephemeral" },
        },
      ],
    },
  ],
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.330;" },
    { type: "text", text: "You are a Claude agent.", cache_control: { type: "ephemeral" } },
  ],
  tools: [
    { name: "Bash", description: "Executes.", input_schema: { type: "object" } },
    { name: "ToolSearch", description: "Finds tools.", input_schema: { type: "object" } },
    { name: "Deferred", description: "Never called.", input_schema: { type: "object" }, defer_loading: true },
  ],
  metadata: { user_id: JSON.stringify({ device_id: "e".repeat(64), account_uuid: "", session_id: "9" }) },
  max_tokens: 128_000,
  thinking: { type: "adaptive", display: "omitted" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
  stream: true,
};

test("a request from Claude Code is translated for every kind, with no features disabled", () => {
  for (const target of [OPENAI, COMPATIBLE, GOOGLE]) {
    const { prompt, tools, reasoning, maxOutputTokens } = call(CLAUDE_CODE, target);
    expect(prompt.map(({ role }) => role)).toEqual(["system", "user", "system", "assistant", "tool"]);
    expect(prompt[0]?.content as string).toEndWith(";\n\nYou are a Claude agent.");
    expect(tools?.map(({ name }) => name)).toEqual(["Bash", "ToolSearch"]);
    // The effort of the last message that has one.
    expect(reasoning).toBe("medium");
    expect(maxOutputTokens).toBe(128_000);
  }
});

test("a tool that is loaded later is offered once a result has loaded it", () => {
  const loading = {
    ...CLAUDE_CODE,
    messages: [
      ...CLAUDE_CODE.messages.slice(0, 3),
      {
        role: "user",
        content: [
          {
            ...{ tool_use_id: "toolu_01abc", type: "tool_result" },
            content: [{ type: "tool_reference", tool_name: "Deferred" }],
          },
        ],
      },
    ],
  };
  const { tools, prompt } = call(loading);
  expect(tools?.map(({ name }) => name)).toEqual(["Bash", "ToolSearch", "Deferred"]);
  const output = { type: "text", value: "The tool Deferred is now available." };
  expect(prompt.at(-1)?.content[0]).toMatchObject({ toolName: "Bash", output });
});
