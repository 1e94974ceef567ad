/** What counts of a request whose tokens the provider does not count, and what a file in it counts. */
import { describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { readChatRequest } from "../../src/dialects/chat/request.ts";
import { chatTextBytes } from "../../src/dialects/chat/text-bytes.ts";
import type { RequestSize } from "../../src/dialects/dialect.ts";
import { readMessagesRequest } from "../../src/dialects/messages/request.ts";
import { messageTextBytes } from "../../src/dialects/messages/text-bytes.ts";
import { readResponsesRequest, responsesRequest } from "../../src/dialects/responses/request.ts";
import { responseTextBytes } from "../../src/dialects/responses/text-bytes.ts";
import { NAMED_FILE_BYTES } from "../../src/dialects/sent-files.ts";

const MOST_OF_FILE = 256 * 1024;
const LENGTH = 1_000_000;
/** Looks like base64: one word without spaces. */
const WORD = "please_obey_".repeat(LENGTH / 12);
const BASE64 = Buffer.alloc((LENGTH * 3) / 4, 7).toString("base64");
const IMAGE = `data:image/png;base64,${BASE64}`;
const PDF = `data:application/pdf;base64,${BASE64}`;
const ADDRESS = "https://files.example/a";

const chat = (content: unknown, more: object = {}): RequestSize =>
  sizeOf(readChatRequest, { model: "m", messages: [{ role: "user", content }], ...more });
const messages = (content: unknown, more: object = {}): RequestSize =>
  sizeOf(readMessagesRequest, { model: "m", messages: [{ role: "user", content }], ...more });
const responses = (content: unknown, more: object = {}): RequestSize =>
  items([{ role: "user", content }], more);
const items = (input: unknown, more: object = {}): RequestSize =>
  sizeOf((bytes, value) => responsesRequest(readResponsesRequest(bytes, value), null, PARTS), {
    ...{ model: "m", input },
    ...more,
  });
const PARTS = { clock: systemClock, log: silentLog };

function sizeOf(
  read: (bytes: Uint8Array, value: unknown) => { readonly size: RequestSize },
  value: object,
): RequestSize {
  const text = JSON.stringify(value);
  return read(Buffer.from(text), JSON.parse(text)).size;
}

const source = (media_type: string, data = BASE64) => ({ type: "base64", media_type, data });
const schema = (name: string) => ({ type: "object", properties: { [name]: { type: "string" } } });

describe("counts in full, however much it looks like a file:", () => {
  const TEXTS: [name: string, size: (text: string) => RequestSize][] = [
    ["a chat message", (text) => chat(text)],
    ["a part of a chat message", (text) => chat([{ type: "text", text }])],
    [
      "an image of a chat message that is no image",
      (url) => chat([{ type: "image_url", image_url: { url } }]),
    ],
    ["the argument of a tool called image_url", (url) => chat("", { tools: [{ image_url: { url } }] })],
    [
      "a name in the schema of a chat's tool",
      (text) => chat("", { tools: [{ function: { parameters: schema(text) } }] }),
    ],
    ["a message", (text) => messages(text)],
    ["a block", (text) => messages([{ type: "text", text }])],
    ["a document of plain text", (data) => messages([{ type: "document", source: { type: "text", data } }])],
    [
      "an argument in a message",
      (data) => messages([{ type: "tool_use", input: { type: "image", source: source("image/png", data) } }]),
    ],
    ["a name in an argument", (name) => messages([{ type: "tool_use", input: { [name]: 1 } }])],
    ["the instructions of a message", (system) => messages("", { system })],
    ["the input of a response", (text) => items(text)],
    ["a part of the input", (text) => responses([{ type: "input_text", text }])],
    ["a tool's output", (output) => items([{ type: "function_call_output", call_id: "c", output }])],
    [
      "the arguments of a call",
      (text) => items([{ type: "function_call", call_id: "c", name: "n", arguments: text }]),
    ],
    ["encrypted reasoning", (text) => items([{ type: "reasoning", encrypted_content: text }])],
    ["the instructions of a response", (instructions) => items("", { instructions })],
  ];
  test.each(TEXTS)("%s", (_name, size) => {
    for (const text of [WORD, `data:${WORD}`, `data:,${WORD}`]) {
      expect(size(text).contentBytes).toBeGreaterThanOrEqual(text.length);
    }
  });
});

test("numbers in arguments count as the text that a model reads", () => {
  const numbers = Array.from({ length: 1_000 }, (_, index) => index + 0.123456789);
  const { contentBytes } = messages([{ type: "tool_use", input: { numbers } }]);
  expect(contentBytes).toBeGreaterThan(10_000);
});

describe("as in tasks, counts at most 256 KiB:", () => {
  const FILES: [name: string, size: () => RequestSize][] = [
    ["an image in a chat message", () => chat([{ type: "image_url", image_url: { url: IMAGE } }])],
    ["a file in a chat message", () => chat([{ type: "file", file: { file_data: PDF } }])],
    [
      "audio in a chat message",
      () => chat([{ type: "input_audio", input_audio: { data: BASE64, format: "mp3" } }]),
    ],
    ["an image in a message", () => messages([{ type: "image", source: source("image/png") }])],
    ["a document in a message", () => messages([{ type: "document", source: source("application/pdf") }])],
    [
      "an image in a tool's result",
      () => messages([{ type: "tool_result", content: [{ type: "image", source: source("image/png") }] }]),
    ],
    [
      "an image in a document's blocks",
      () =>
        messages([
          {
            type: "document",
            source: { type: "content", content: [{ type: "image", source: source("image/png") }] },
          },
        ]),
    ],
    ["an image in the input of a response", () => responses([{ type: "input_image", image_url: IMAGE }])],
    ["a file in the input of a response", () => responses([{ type: "input_file", file_data: PDF }])],
    [
      "a screenshot",
      () =>
        items([{ type: "computer_call_output", output: { type: "computer_screenshot", image_url: IMAGE } }]),
    ],
    [
      "an image in a tool's output",
      () => items([{ type: "function_call_output", output: [{ type: "input_image", image_url: IMAGE }] }]),
    ],
    ["an image that the model made", () => items([{ type: "image_generation_call", result: BASE64 }])],
    [
      "the mask of an image",
      () => items("", { tools: [{ type: "image_generation", input_image_mask: { image_url: IMAGE } }] }),
    ],
  ];
  test.each(FILES)("%s", (_name, size) => {
    const { bytes, contentBytes, textBytes } = size();
    expect(contentBytes).toBeGreaterThanOrEqual(MOST_OF_FILE);
    expect(contentBytes).toBeLessThan(MOST_OF_FILE + 500);
    expect(bytes).toBeGreaterThan(LENGTH);
    // No count is too low for it.
    expect(textBytes).toBeLessThan(500);
  });
});

test("as in tasks, the text of a text file counts in full", () => {
  for (const type of ["text/plain", "application/json"]) {
    const url = `data:${type};base64,${BASE64}`;
    expect(chat([{ type: "file", file: { file_data: url } }]).contentBytes).toBeGreaterThanOrEqual(750_000);
    const { contentBytes } = messages([{ type: "document", source: source(type) }]);
    expect(contentBytes).toBeGreaterThanOrEqual(750_000);
  }
  // The provider may read a file without a type as text.
  expect(responses([{ type: "input_file", file_data: BASE64 }]).contentBytes).toBeGreaterThanOrEqual(750_000);
});

describe("a file that is only named counts as much as the largest file that is sent:", () => {
  const NAMED: [name: string, size: () => RequestSize][] = [
    ["an image of a chat message", () => chat([{ type: "image_url", image_url: { url: ADDRESS } }])],
    ["an image in another scheme", () => chat([{ type: "image_url", image_url: { url: "gs://bucket/a" } }])],
    ["an image of a message", () => messages([{ type: "image", source: { type: "url", url: ADDRESS } }])],
    [
      "a document of a message",
      () => messages([{ type: "document", source: { type: "url", url: ADDRESS } }]),
    ],
    [
      "a document in a tool's result",
      () =>
        messages([
          { type: "tool_result", content: [{ type: "document", source: { type: "url", url: ADDRESS } }] },
        ]),
    ],
    ["an image of a response", () => responses([{ type: "input_image", image_url: ADDRESS }])],
    ["a file of a response", () => responses([{ type: "input_file", file_url: ADDRESS }])],
    ["an address in place of a file's data", () => chat([{ type: "file", file: { file_data: ADDRESS } }])],
    ["the address of a file in a chat message", () => chat([{ type: "file", file: { file_url: ADDRESS } }])],
    ["a document of another server", () => chat([{ type: "document_url", document_url: ADDRESS }])],
    ["a part that only a server knows", () => chat([{ type: "scan", scan: { pages: [{ at: ADDRESS }] } }])],
    [
      "an address in place of a file's data in a response",
      () => responses([{ type: "input_file", file_data: ADDRESS }]),
    ],
    [
      "an image of a response in an object",
      () => responses([{ type: "input_image", image_url: { url: ADDRESS } }]),
    ],
    [
      "a part of a response that only a server knows",
      () => responses([{ type: "input_video", video_url: ADDRESS }]),
    ],
    [
      "an address in place of a document's data in a message",
      () => messages([{ type: "document", source: source("application/pdf", ADDRESS) }]),
    ],
  ];
  test.each(NAMED)("%s", (_name, size) => {
    const { bytes, contentBytes } = size();
    expect(bytes).toBeGreaterThan(NAMED_FILE_BYTES);
    expect(contentBytes).toBeGreaterThan(NAMED_FILE_BYTES);
    expect(bytes).toBeLessThan(NAMED_FILE_BYTES + 500);
  });

  test("an address in a text is text", () => {
    const sizes = [
      chat([{ type: "text", text: ADDRESS }]),
      messages([{ type: "text", text: ADDRESS }]),
      responses([{ type: "input_text", text: ADDRESS }]),
    ];
    for (const { bytes } of sizes) expect(bytes).toBeLessThan(500);
  });

  test("each of several counts", () => {
    const part = { type: "input_file", file_url: ADDRESS };
    expect(responses([part, part, part]).bytes).toBeGreaterThan(3 * NAMED_FILE_BYTES);
  });
});

test("an answer counts in full, however much it looks like a file", () => {
  for (const text of [WORD, `data:${WORD}`]) {
    const call = { id: "c", type: "function", function: { name: "n", arguments: text } };
    const custom = { id: "c", type: "custom", custom: { name: "n", input: text } };
    const spoken = [
      { content: text },
      { content: [{ type: "text", text }] },
      { reasoning_content: text },
      { refusal: text },
      { tool_calls: [call] },
      { tool_calls: [custom] },
      { function_call: { name: "n", arguments: text } },
    ];
    for (const message of spoken)
      expect(chatTextBytes({ choices: [{ message }] })).toBeGreaterThanOrEqual(text.length);
    const blocks = [
      { type: "text", text },
      { type: "thinking", thinking: text },
      { type: "tool_use", input: { text } },
      { type: "tool_use", input: { [text]: 1 } },
    ];
    for (const block of blocks) expect(messageTextBytes([block])).toBeGreaterThanOrEqual(text.length);
    const output = [
      { type: "message", content: [{ type: "output_text", text }] },
      { type: "function_call", arguments: text },
      { type: "custom_tool_call", input: text },
      { type: "shell_call", action: { commands: [text] } },
    ];
    for (const item of output) expect(responseTextBytes([item])).toBeGreaterThanOrEqual(text.length);
  }
});

test("files in an answer, and signatures, are not text that the model wrote", () => {
  const message = { content: "hi", audio: { data: BASE64 }, images: [{ image_url: { url: IMAGE } }] };
  expect(chatTextBytes({ choices: [{ message }] })).toBeLessThan(100);
  const thinking = { type: "thinking", thinking: "hm", signature: BASE64 };
  expect(messageTextBytes([thinking, { type: "redacted_thinking", data: BASE64 }])).toBeLessThan(100);
  const made = { type: "image_generation_call", result: BASE64 };
  expect(responseTextBytes([made, { type: "reasoning", encrypted_content: BASE64 }])).toBeLessThan(100);
});
