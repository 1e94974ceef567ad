import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createMask } from "../../../src/base/masking/mask.ts";
import { answerOf } from "../../../src/connectors/openapi/answer/answer.ts";
import { callOne, documentOf, type FakeApi, startApi, textOf } from "./api.ts";

const SECRET = "s3cr3t-of-the-connector";
let api: FakeApi;
beforeAll(() => {
  api = startApi();
});
afterAll(() => api.close());

function answered(response: () => Response) {
  api.answer(response);
  return callOne(documentOf({}), {}, { baseUrl: api.url, secrets: [SECRET] });
}
const typed =
  (body: string | Uint8Array<ArrayBuffer>, type: string, status = 200) =>
  () =>
    new Response(body, { status, headers: { "content-type": type } });

describe("any status except success is an error", () => {
  test.each([
    [
      "with the body's text",
      typed('{"error":"no such pet"}', "application/json", 404),
      'status 404 Not Found:\n{"error":"no such pet"}',
    ],
    ["without a body", () => new Response(null, { status: 500 }), "status 500 Internal Server Error."],
    ["not modified", () => new Response(null, { status: 304 }), "status 304 Not Modified."],
    ["with the secret masked", typed(`bad key ${SECRET}`, "text/plain", 401), "bad key [redacted]"],
    ["with bytes", typed(new Uint8Array([0, 255]), "image/png", 400), "status 400 Bad Request."],
  ])("%s", async (_, response, says) => {
    const answer = await answered(response);
    expect(answer.isError).toBe(true);
    expect(answer.structuredContent).toBeUndefined();
    expect(textOf(answer)).toStartWith("The API answered with status ");
    expect(textOf(answer)).toContain(says);
  });

  test("a long body is cut after masking", async () => {
    const answer = await answered(
      typed(`${"x".repeat(3_990)}${SECRET}${"y".repeat(5_000)}`, "text/plain", 500),
    );
    expect(textOf(answer)).not.toContain("s3cr3t");
    expect(textOf(answer).length).toBeLessThan(4_100);
    expect(textOf(answer)).toEndWith("…");
  });

  test("a body cut in the middle of a secret shows no part of it, even if the rest is blank", async () => {
    const blanks = " ".repeat(1_024 * 1_024 - 20);
    const answer = await answered(typed(`${blanks}${SECRET}`, "text/plain", 500));
    expect(textOf(answer)).toBe("The API answered with status 500 Internal Server Error.");
  });
});

describe("a success", () => {
  test("of a JSON object is text and structured content, both masked", async () => {
    const answer = await answered(
      typed(`{"id": 12345678901234567890, "${SECRET}": ["${SECRET}"]}`, "application/hal+json"),
    );
    expect(textOf(answer)).toBe('{"id": 12345678901234567890, "[redacted]": ["[redacted]"]}');
    expect(answer.structuredContent).toEqual({ id: 12345678901234567000, "[redacted]": ["[redacted]"] });
    expect(answer.isError).toBeUndefined();
  });

  test.each([
    ["a JSON list", typed("[1]", "application/json"), "[1]"],
    ["invalid JSON", typed("{nope", "application/json"), "{nope"],
    [
      "deeply nested JSON",
      typed(`{"a":${"[".repeat(500)}${"]".repeat(500)}}`, "application/json"),
      `{"a":${"[".repeat(500)}`,
    ],
    ["plain text", typed(`a ${SECRET}`, "text/plain"), "a [redacted]"],
    ["HTML", typed("<p>", "text/html"), "<p>"],
    ["another charset", typed(new Uint8Array([0xe9]), "text/plain; charset=iso-8859-1"), "é"],
    ["an unknown charset", typed("a", "text/plain; charset=klingon"), "a"],
    ["an image made of text", typed("<svg/>", "image/svg+xml"), "<svg/>"],
    [
      "nothing",
      () => new Response(null, { status: 204 }),
      "The API answered with status 204 No Content and an empty body.",
    ],
    [
      "the created resource",
      () => new Response(null, { status: 201, headers: { location: "/things/7" } }),
      "The API answered with status 201 Created and an empty body. Location: /things/7",
    ],
  ])("of %s is only text", async (_, response, text) => {
    const answer = await answered(response);
    expect(textOf(answer)).toStartWith(text);
    expect(answer.structuredContent).toBeUndefined();
    expect(answer.isError).toBeUndefined();
  });

  test("without a type is text if it is UTF-8, and otherwise bytes", async () => {
    const untyped = (...bytes: number[]) => {
      const url = new URL("https://things.example/a?key=hidden");
      return answerOf(new Response(new Uint8Array(bytes)), url, createMask([]), new AbortController().signal);
    };
    expect((await untyped(0xc3, 0xa9)).content).toEqual([{ type: "text", text: "é" }]);
    const resource = { uri: "https://things.example/a", mimeType: "application/octet-stream", blob: "6Q==" };
    expect((await untyped(0xe9)).content).toEqual([{ type: "resource", resource }]);
  });

  test("of an image, a sound or other bytes is a separate block", async () => {
    const bytes = new Uint8Array([1, 2, 255]);
    expect((await answered(typed(bytes, "image/png"))).content).toEqual([
      { type: "image", data: "AQL/", mimeType: "image/png" },
    ]);
    expect((await answered(typed(bytes, "audio/ogg"))).content).toEqual([
      { type: "audio", data: "AQL/", mimeType: "audio/ogg" },
    ]);
    expect((await answered(typed(bytes, "application/pdf"))).content).toEqual([
      { type: "resource", resource: { uri: `${api.url}/things`, mimeType: "application/pdf", blob: "AQL/" } },
    ]);
  });

  test("of too many bytes, or of bytes that contain the secret, becomes a sentence", async () => {
    const large = await answered(typed(new Uint8Array(1_024 * 1_024 + 1), "image/png"));
    expect(large.content).toHaveLength(1);
    expect(textOf(large)).toBe(
      "The answer is of type image/png and larger than 1048576 bytes. It is omitted.",
    );
    const telling = await answered(typed(`\0\0${SECRET}\0`, "application/octet-stream"));
    expect(textOf(telling)).toContain("contains a secret of the connector");
  });

  test("of a long text is cut with a note, and shows no part of a secret at the cut", async () => {
    const whole = await answered(typed("x".repeat(1_000_000), "text/plain"));
    expect(whole.content).toHaveLength(1);
    // Two bytes for each character, so the limit in bytes applies first and cuts the secret in two.
    const half = 1_024 * 1_024 - 10;
    const cut = await answered(typed(`${"é".repeat(half / 2)}${SECRET}${"z".repeat(50)}`, "text/plain"));
    const [text, note] = cut.content.map((block) => String(block.text));
    expect(text).toMatch(/^é+$/);
    expect(note).toBe(`The answer is longer: only its first ${text?.length} characters are shown.`);
    const json = await answered(typed(`{"a":"${"x".repeat(1_100_000)}"}`, "application/json"));
    expect(json.structuredContent).toBeUndefined();
    expect(String(json.content[0]?.text)).toHaveLength(1_000_000);
  });
});
