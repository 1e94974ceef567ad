import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const LIMIT = 10 * 1024 * 1024;
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("agent");
});
afterAll(() => gateway.stop());

/** Routes that accept a body. */
const BODIES = [
  ["POST", "/v1/agents"],
  ["PATCH", "/v1/agents/agent"],
  ["POST", "/v1/tasks"],
  ["POST", "/v1/tokens"],
  ["PATCH", "/v1/workspace"],
] as const;
const bytes = (...values: number[]) => new Uint8Array(values);
const text = (value: string) => new TextEncoder().encode(value);

function chunked(size: number): ReadableStream<Uint8Array> {
  const chunk = new Uint8Array(1024 * 1024).fill(0x20);
  let left = size;
  return new ReadableStream({
    pull(controller) {
      if (left <= 0) return controller.close();
      controller.enqueue(chunk.subarray(0, Math.min(left, chunk.length)));
      left -= chunk.length;
    },
  });
}

describe("400 invalid_json", () => {
  const cases: readonly [name: string, raw: string | Uint8Array][] = [
    ["an empty body", ""],
    ["white space", " \n\t"],
    ["half an object", '{"name":"x"'],
    ["half a string", '{"name":"x'],
    ["text", "hello"],
    ["a trailing comma", '{"name":"x",}'],
    ["single quotes", "{'name':'x'}"],
    ["a comment", '{"name":"x"} // x'],
    ["two values", '{"name":"x"}{}'],
    ["NaN", '{"max_steps":NaN}'],
    ["a leading zero", '{"max_steps":01}'],
    ["a hexadecimal number", '{"max_steps":0x1}'],
    ["a raw line break in a string", '{"name":"a\nb"}'],
    ["a NUL at the end", '{"name":"x"}\0'],
    ["Latin-1", bytes(0x7b, 0x22, 0xe4, 0x22, 0x3a, 0x31, 0x7d)],
    ["a cut UTF-8 sequence", bytes(0x22, 0xf0, 0x9f, 0x98, 0x22)],
    ["an overlong UTF-8 sequence", bytes(0x22, 0xc0, 0xaf, 0x22)],
    ["a surrogate in UTF-8", bytes(0x22, 0xed, 0xa0, 0x80, 0x22)],
    ["UTF-16", new Uint8Array(new Uint16Array([0xfeff, 0x7b, 0x7d]).buffer)],
    ["half a surrogate pair", '{"name":"\\ud83d"}'],
    ["a pair the wrong way round", '{"name":"\\ude00\\ud83d"}'],
    ["half a pair in a key", '{"\\ud83d":1}'],
    ["half a pair deep inside", '{"a":[{"b":["\\uDE00"]}]}'],
    ["100 open brackets", "[".repeat(100)],
  ];
  test.each(cases)("%s", async (_, raw) => {
    for (const [method, path] of BODIES) {
      const answer = await gateway.call(method, path, { raw });
      expect([method, path, answer.status, answer.body.code]).toEqual([method, path, 400, "invalid_json"]);
    }
  });

  test("no body and no Content-Type", async () => {
    for (const [method, path] of BODIES) {
      const answer = await gateway.call(method, path);
      expect([method, path, answer.status, answer.body.code]).toEqual([method, path, 400, "invalid_json"]);
    }
  });
});

describe("415 unsupported_media_type", () => {
  test.each([
    ["text/plain"],
    ["application/x-www-form-urlencoded"],
    ["multipart/form-data; boundary=x"],
    ["application/xml"],
    ["text/json"],
    ["application/jsonp"],
    ["application/json; charset=iso-8859-1"],
    ["application/json, text/plain"],
    ["json"],
  ])("%s", async (type) => {
    for (const [method, path] of BODIES) {
      const answer = await gateway.call(method, path, { raw: "{}", headers: { "content-type": type } });
      expect([answer.status, answer.body.code]).toEqual([415, "unsupported_media_type"]);
    }
  });
  test("a body without a Content-Type", async () => {
    const answer = await fetch(`${gateway.url}/v1/agents`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.admin}` },
      body: text("{}"),
    });
    expect(answer.status).toBe(415);
    expect(((await answer.json()) as { code: string }).code).toBe("unsupported_media_type");
  });
  test.each(["gzip", "br", "deflate", "gzip, identity"])("Content-Encoding: %s", async (encoding) => {
    const headers = { "content-encoding": encoding };
    const answer = await gateway.call("POST", "/v1/agents", { raw: Bun.gzipSync(text("{}")), headers });
    expect([answer.status, answer.body.code]).toEqual([415, "unsupported_media_type"]);
  });
  test.each([
    "application/json",
    "APPLICATION/JSON",
    "application/json; charset=utf-8",
    'application/json;charset="UTF-8"',
    "application/merge-patch+json",
  ])("not %s", async (type) => {
    const raw = '{"owner":"x"}';
    const answer = await gateway.call("PATCH", "/v1/agents/agent", {
      raw,
      headers: { "content-type": type },
    });
    expect(answer.status).toBe(200);
  });
});

describe("413 body_too_large past 10 MiB", () => {
  test.each([
    ["one byte, with Content-Length", () => new Uint8Array(LIMIT + 1).fill(0x20)],
    ["one byte, in chunks", () => chunked(LIMIT + 1)],
    ["five times, in chunks", () => chunked(5 * LIMIT)],
  ])("%s", async (_, raw) => {
    const answer = await gateway.call("POST", "/v1/agents", { raw: raw() });
    expect([answer.status, answer.body.code]).toEqual([413, "body_too_large"]);
  });

  test.each([
    ["with Content-Length", (body: Uint8Array) => body],
    ["in chunks", (body: Uint8Array) => new Blob([body]).stream()],
  ])("not at 10 MiB, %s", async (_, send) => {
    const body = text(`{"owner":"whole"}${" ".repeat(LIMIT)}`).subarray(0, LIMIT);
    const answer = await gateway.call("PATCH", "/v1/agents/agent", { raw: send(body) });
    expect([answer.status, answer.body.owner]).toEqual([200, "whole"]);
  });

  test("a caller without the required scope is told that first", async () => {
    const raw = new Uint8Array(LIMIT + 1);
    expect((await gateway.call("POST", "/v1/agents", { raw, token: null })).status).toBe(401);
  });
});

describe("JSON of more than 100 levels is refused before it is parsed", () => {
  const lists = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
  const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
  const cases: readonly [name: string, raw: string][] = [
    ["101 nested lists", lists(101)],
    ["101 nested objects", objects(101)],
    ["100 levels in a field", `{"owner":${lists(100)}}`],
    ["50,000 nested objects", objects(50_000)],
    ["lists that are never closed", "[".repeat(50_000)],
    ["a deep list after a long string", `["${"\\n".repeat(500)}",${lists(50_000)}]`],
  ];
  test.each(cases)("%s", async (_, raw) => {
    for (const [method, path] of BODIES) {
      const answer = await gateway.call(method, path, { raw });
      expect([method, path, answer.status, answer.body.code, answer.body.detail]).toEqual([
        method,
        path,
        400,
        "nested_too_deep",
        "The body is nested too deeply: at most 100 levels are allowed.",
      ]);
    }
  });
});

describe("JSON of more than 50,000 members is refused before it is parsed", () => {
  const repeat = (text: (index: number) => string, times = 50_001): string =>
    Array.from({ length: times }, (_, index) => text(index)).join();
  const cases: readonly [name: string, raw: string][] = [
    ["numbers in a list", `[${repeat(() => "0")}]`],
    ["numbers in a list of a field", `{"owner":[${repeat(() => "0")}]}`],
    ["empty lists", `[${repeat(() => "[]", 25_001)}]`],
    ["integers as keys", `{${repeat((index) => `"${4_000_000_000 - index * 7_919}":0`)}}`],
    ["different keys", `{${repeat((index) => `"k${index}":0`)}}`],
    ["one key repeated", `{${repeat(() => '"owner":0')}}`],
    ["an object for each item", `[${repeat(() => '{"1":0}', 25_001)}]`],
    ["text that is not JSON", `[${repeat(() => "")}`],
  ];
  test.each(cases)("%s", async (_, raw) => {
    for (const [method, path] of [...BODIES, ["POST", "/v1/vault/documents"]] as const) {
      const answer = await gateway.call(method, path, { raw });
      expect([method, path, answer.status, answer.body.code, answer.body.detail]).toEqual([
        method,
        path,
        413,
        "body_too_large",
        "The body has too many members: at most 50000 are allowed.",
      ]);
    }
  });

  test("a connector may have 100,000, for the OpenAPI document in it", async () => {
    const connector = (members: number) => ({
      raw: `{"name":"api","kind":"openapi","base_url":"https://x.invalid","spec":{"x":[${repeat(() => "0", members)}]}}`,
    });
    const within = await gateway.call("POST", "/v1/connectors", connector(99_995));
    expect([within.status, within.body.code]).toEqual([422, "validation_failed"]);
    const past = await gateway.call("POST", "/v1/connectors", connector(99_996));
    expect([past.status, past.body.code]).toEqual([413, "body_too_large"]);
    expect(past.body.detail).toContain("at most 100000 are allowed");
  });
});

describe("valid JSON with invalid content answers 422, however it is built", () => {
  const filler = "0,".repeat(40_000);
  const cases: readonly [name: string, raw: string][] = [
    ["null", "null"],
    ["a number", "1"],
    ["a string", '"x"'],
    ["a list", "[]"],
    ["100 nested lists", `${"[".repeat(100)}${"]".repeat(100)}`],
    ["99 nested objects in a field", `{"owner":${'{"a":'.repeat(99)}1${"}".repeat(99)}}`],
    ["40,000 items and a surrogate pair", `{"owner":"\\ud83d\\ude00","tools":[${filler}0]}`],
    ["the same key twice", '{"owner":1,"owner":2}'],
    ["__proto__", '{"__proto__":{"owner":"x"}}'],
    ["constructor", '{"constructor":{"prototype":{}}}'],
    ["toString", '{"toString":1}'],
  ];
  test.each(cases)("%s", async (_, raw) => {
    for (const [method, path] of BODIES) {
      const answer = await gateway.call(method, path, { raw });
      expect([method, path, answer.status, answer.body.code]).toEqual([
        method,
        path,
        422,
        "validation_failed",
      ]);
    }
  });

  test("a list of 40,000 equal items, too many to compare each with each", async () => {
    const body = { agent: "agent", prompt: "x", tools: Array.from({ length: 40_000 }, () => "a") };
    const answer = await gateway.call("POST", "/v1/tasks", { body });
    expect([answer.status, answer.body.errors[0].path]).toEqual([422, "/tools"]);
  });

  test("numbers beyond every range", async () => {
    for (const value of ["1e400", "-1e400", "1e21", "9007199254740993", "1.0000001", "-0.5", "1e-400"]) {
      for (const raw of [
        `{"agent":"agent","prompt":"x","tier":${value}}`,
        `{"name":"n","owner":"o","memory_scope":"a","max_steps":${value}}`,
      ]) {
        const path = raw.includes("prompt") ? "/v1/tasks" : "/v1/agents";
        const answer = await gateway.call("POST", path, { raw });
        expect([value, path, answer.status]).toEqual([value, path, 422]);
      }
    }
    const zero = await gateway.call("PATCH", "/v1/workspace", { raw: '{"budget":{"credits_per_month":-0}}' });
    expect([zero.status, JSON.stringify(zero.body.budget)]).toEqual([200, '{"credits_per_month":0}']);
    await gateway.call("PATCH", "/v1/workspace", { body: { budget: { credits_per_month: null } } });
  });
});

describe("an optional body", () => {
  test.each([
    ["none", {}],
    ["an empty one", { raw: "" }],
    ["an empty object", { body: {} }],
  ])("may be %s", async (_, options) => {
    expect((await gateway.call("POST", "/v1/agents/agent/resume", options)).status).toBe(200);
  });
  test.each([
    ["a list", { body: [] }, 422],
    ["null", { body: null }, 422],
    ["broken", { raw: "{" }, 400],
    ["text", { raw: "x", headers: { "content-type": "text/plain" } }, 415],
  ])("may not be %s", async (_, options, status) => {
    expect((await gateway.call("POST", "/v1/agents/agent/resume", options)).status).toBe(status);
  });
});
