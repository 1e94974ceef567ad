import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

type Row = readonly [name: string, body: unknown, path: string];
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, at]));
const base64 = (text: string) => Buffer.from(text).toString("base64");

const good = { title: "T", text: "Some text.", scope: "support" };
const { text: _text, ...rest } = good;
const bytes = { ...rest, content_type: "text/plain" };

const SEARCHES: readonly Row[] = [
  ["nothing", {}, "/query"],
  ["an empty query", { query: "" }, "/query"],
  ["a query that is not text", { query: 5 }, "/query"],
  ["a query that is null", { query: null }, "/query"],
  ["a query that is a list", { query: ["a"] }, "/query"],
  ["a query that is too long", { query: "a".repeat(100_001) }, "/query"],
  ["a query under too many marks", { query: `a${"\u0301".repeat(2_000_000)}` }, "/query"],
  ["no results", { query: "a", top_k: 0 }, "/top_k"],
  ["fewer than zero results", { query: "a", top_k: -1 }, "/top_k"],
  ["too many results", { query: "a", top_k: 101 }, "/top_k"],
  ["a result and a half", { query: "a", top_k: 1.5 }, "/top_k"],
  ["a number as text", { query: "a", top_k: "10" }, "/top_k"],
  ["a number that is too large", { query: "a", top_k: 1e300 }, "/top_k"],
  ["no scope", { query: "a", scopes: [] }, "/scopes"],
  ["a scope that is not a list", { query: "a", scopes: "support" }, "/scopes"],
  ["too many scopes", { query: "a", scopes: Array(33).fill("a") }, "/scopes"],
  ["an agent without a name", { query: "a", agent: "" }, "/agent"],
  ["an agent that is not text", { query: "a", agent: 7 }, "/agent"],
  ["an agent with too long a name", { query: "a", agent: "a".repeat(64) }, "/agent"],
  ["another mode", { query: "a", mode: "semantic" }, "/mode"],
  ["a mode in capitals", { query: "a", mode: "Hybrid" }, "/mode"],
  ["a mode that is null", { query: "a", mode: null }, "/mode"],
  ["an explanation as text", { query: "a", explain: "true" }, "/explain"],
  ["no characters", { query: "a", max_chars: 0 }, "/max_chars"],
  ["half a character", { query: "a", max_chars: 0.5 }, "/max_chars"],
  ["too many characters", { query: "a", max_chars: 10_000_001 }, "/max_chars"],
  ["a filter that is a list", { query: "a", filter: [] }, "/filter"],
  ["a filter that is text", { query: "a", filter: "a=b" }, "/filter"],
  ["a filter for an object", { query: "a", filter: { a: { $gt: 1 } } }, "/filter/a"],
  ["a filter for a list", { query: "a", filter: { a: ["b"] } }, "/filter/a"],
  ["a filter for null", { query: "a", filter: { a: null } }, "/filter/a"],
  ["a filter for too long a text", { query: "a", filter: { a: "x".repeat(1_001) } }, "/filter/a"],
  ["a filter by a name with a space before it", { query: "a", filter: { " a": 1 } }, "/filter/ a"],
  ["a filter by a name with a line break", { query: "a", filter: { "a\n/b": 1 } }, "/filter/a\n~1b"],
  ["a filter with an empty name", { query: "a", filter: { "": 1 } }, "/filter/"],
  ["a filter by too many names", { query: "a", filter: many(33) }, "/filter"],
  ["an age without a length", { query: "a", recency: {} }, "/recency/half_life"],
  ["an age of zero", { query: "a", recency: { half_life: "0d" } }, "/recency/half_life"],
  ["an age in years", { query: "a", recency: { half_life: "1y" } }, "/recency/half_life"],
  ["an age as a number", { query: "a", recency: { half_life: 30 } }, "/recency/half_life"],
  ["an age below zero", { query: "a", recency: { half_life: "-1d" } }, "/recency/half_life"],
  [
    "an age with trailing characters",
    { query: "a", recency: { half_life: "1d", decay: 1 } },
    "/recency/decay",
  ],
  ["an unknown field", { query: "a", limit: 3 }, "/limit"],
  ["another workspace", { query: "a", workspace: "other" }, "/workspace"],
];

const DOCUMENTS: readonly Row[] = [
  ["nothing", {}, "/title"],
  ["no title", { text: "x", scope: "a" }, "/title"],
  ["an empty title", { ...good, title: "" }, "/title"],
  ["a title of white space", { ...good, title: " \n" }, "/title"],
  ["a title that is too long", { ...good, title: "a".repeat(1_001) }, "/title"],
  ["a title under too many marks", { ...good, title: `a${"\u0301".repeat(1_000_000)}` }, "/title"],
  ["a title that is null", { ...good, title: null }, "/title"],
  ["no scope", { title: "T", text: "x" }, "/scope"],
  ["a list of scopes", { ...good, scope: ["support"] }, "/scope"],
  ["neither text nor bytes", rest, "/text"],
  ["text and bytes", { ...good, content_base64: base64("x"), content_type: "text/plain" }, "/text"],
  ["an empty text", { ...good, text: "" }, "/text"],
  ["a text of white space", { ...good, text: " \n\t\u3000 " }, "/text"],
  ["a text with NUL", { ...good, text: "a\0b" }, "/text"],
  ["a text that is not text", { ...good, text: 5 }, "/text"],
  ["bytes without their type", { ...rest, content_base64: base64("x") }, "/content_type"],
  ["no bytes", { ...bytes, content_base64: "" }, "/content_base64"],
  ["bytes given as white space", { ...bytes, content_base64: base64(" \n ") }, "/content_base64"],
  ["white space instead of bytes", { ...bytes, content_base64: "  \n" }, "/content_base64"],
  ["bytes that are not base64", { ...bytes, content_base64: "not base64!" }, "/content_base64"],
  ["base64 of the wrong alphabet", { ...bytes, content_base64: "_-_-" }, "/content_base64"],
  ["base64 with padding in the middle", { ...bytes, content_base64: "aGVs=bG8" }, "/content_base64"],
  ["base64 with a digit too many", { ...bytes, content_base64: "aGVsbG8hI" }, "/content_base64"],
  ["base64 with wrong padding", { ...bytes, content_base64: "aGVsb===" }, "/content_base64"],
  ["base64 of padding alone", { ...bytes, content_base64: "==" }, "/content_base64"],
  [
    "much white space and invalid base64",
    { ...bytes, content_base64: `${" ".repeat(3_000_000)}!` },
    "/content_base64",
  ],
  [
    "much padding and invalid base64",
    { ...bytes, content_base64: `${"=".repeat(3_000_000)}!` },
    "/content_base64",
  ],
  ["bytes that are not UTF-8", { ...bytes, content_base64: "/////w==" }, "/content_base64"],
  ["an unknown type", { ...good, content_type: "image/png" }, "/content_type"],
  ["an empty type", { ...good, content_type: "" }, "/content_type"],
  ["a type that is too long", { ...good, content_type: "a".repeat(201) }, "/content_type"],
  ["a type of bytes for a text", { ...good, content_type: "application/pdf" }, "/text"],
  [
    "an invalid PDF",
    { ...bytes, content_type: "application/pdf", content_base64: base64("no PDF") },
    "/content_base64",
  ],
  ["invalid JSON", { ...good, content_type: "application/json", text: "{" }, "/text"],
  ["an empty id", { ...good, id: "" }, "/id"],
  ["an id of another kind", { ...good, id: "task_01arz3ndektsv4rrffq69g5fav" }, "/id"],
  ["an id with a capital", { ...good, id: "doc_01ARZ3NDEKTSV4RRFFQ69G5FAV" }, "/id"],
  ["an id that is too short", { ...good, id: "doc_01arz3ndektsv4rrffq69g5fa" }, "/id"],
  ["an id that is too long", { ...good, id: `doc_${"0".repeat(61)}` }, "/id"],
  ["an id past the last one", { ...good, id: "doc_81arz3ndektsv4rrffq69g5fav" }, "/id"],
  ["an id that is a path", { ...good, id: "../etc/passwd" }, "/id"],
  ["an id that is null", { ...good, id: null }, "/id"],
  ["an empty source", { ...good, source_uri: "" }, "/source_uri"],
  ["a source that is too long", { ...good, source_uri: "a".repeat(2_001) }, "/source_uri"],
  ["a source that is null", { ...good, source_uri: null }, "/source_uri"],
  ["metadata that is a list", { ...good, metadata: [] }, "/metadata"],
  ["metadata in metadata", { ...good, metadata: { a: { b: 1 } } }, "/metadata/a"],
  ["metadata that is null", { ...good, metadata: { a: null } }, "/metadata/a"],
  ["a list as metadata", { ...good, metadata: { a: ["b"] } }, "/metadata/a"],
  ["metadata that is too long", { ...good, metadata: { a: "x".repeat(1_001) } }, "/metadata/a"],
  [
    "metadata with too long a name",
    { ...good, metadata: { ["a".repeat(65)]: 1 } },
    `/metadata/${"a".repeat(65)}`,
  ],
  [
    "metadata with a name that contains a bell",
    { ...good, metadata: { "a\u0007b": 1 } },
    "/metadata/a\u0007b",
  ],
  ["metadata with too many names", { ...good, metadata: many(33) }, "/metadata"],
  ["an unknown field", { ...good, created_by: "user:root" }, "/created_by"],
  ["another agent", { ...good, agent: "legal" }, "/agent"],
];

describe.each([
  ["search", "/v1/vault/search", SEARCHES],
  ["documents", "/v1/vault/documents", DOCUMENTS],
] as const)("POST of %s", (_, path, rows) => {
  test.each(rows)("%s is refused, and the field is named", async (_, body, field) => {
    const answer = await gateway.call("POST", path, { body });
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
    expect(answer.body.errors.map((error: { path: string }) => error.path)).toContain(field);
    expect(answer.body.detail).toContain(answer.body.errors[0].path);
  });

  test.each([
    ["a list", "[]", 422],
    ["null", "null", 422],
    ["a text", '"query"', 422],
    ["no JSON", "{", 400],
    ["nothing at all", "", 400],
  ])("%s as a body is refused", async (_, raw, status) => {
    expect((await gateway.call("POST", path, { raw })).status).toBe(status);
  });

  test("a number out of range is refused", async () => {
    const raw =
      '{"query":"a","title":"T","text":"x","scope":"a","metadata":{"k":1e400},"filter":{"k":1e400}}';
    expect((await gateway.call("POST", path, { raw })).status).toBe(422);
  });

  test("a body of another type is refused", async () => {
    const headers = { "content-type": "text/plain" };
    expect((await gateway.call("POST", path, { raw: "x", headers })).status).toBe(415);
  });
});

test("none of these was written", async () => {
  const { body } = await gateway.call("GET", "/v1/vault/documents");
  expect(body.data).toEqual([]);
  expect((await gateway.call("POST", "/v1/vault/search", { body: { query: "text" } })).body.results).toEqual(
    [],
  );
});

describe("a body", () => {
  const MIB = 1024 * 1024;
  const blank = (mib: number) => `{"title":"T","scope":"a","text":"${" ".repeat(mib * MIB)}"}`;

  test.each([
    ["for a document may be 50 MiB", "/v1/vault/documents", 11, 422, "validation_failed"],
    ["for a document may not be larger", "/v1/vault/documents", 50, 413, "body_too_large"],
    ["for a search may be 10 MiB", "/v1/vault/search", 10, 413, "body_too_large"],
  ])("%s", async (_, path, mib, status, code) => {
    const answer = await gateway.call("POST", path, { raw: blank(mib) });
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });
});

describe("values at their limit are accepted", () => {
  test.each<[string, object]>([
    ["a title of 1,000 characters", { title: "a".repeat(1_000) }],
    ["a source of 2,000 characters", { source_uri: "a".repeat(2_000) }],
    ["32 values of metadata", { metadata: many(32) }],
    ["a long name and a long value", { metadata: { ["a".repeat(64)]: "x".repeat(1_000) } }],
    [
      "names with spaces, slashes and letters of any kind",
      { metadata: { "Case No": "1", "a/b": 2, größe: 3 } },
    ],
    ["numbers of all kinds", { metadata: { a: 0, b: -1.5, c: 1e300, d: 9_007_199_254_740_991, e: true } }],
    ["names that every object has", { metadata: { constructor: "a", toString: "b", __proto__x: "c" } }],
    ["16 segments", { scope: Array(16).fill("a").join("/") }],
    ["a scope of 1,024 characters", { scope: "a".repeat(1_024) }],
    ["a chosen id", { id: "doc_01arz3ndektsv4rrffq69g5fav" }],
    [
      "base64 with line breaks",
      { text: undefined, content_base64: "aGVs\r\nbG8=\r\n", content_type: "text/plain" },
    ],
    ["base64 without padding", { text: undefined, content_base64: "aGVsbG8", content_type: "text/plain" }],
  ])("%s", async (_, more) => {
    const { status, body } = await gateway.call("POST", "/v1/vault/documents", {
      body: { ...good, ...more },
    });
    expect(status).toBe(201);
    const read = (await gateway.call("GET", `/v1/vault/documents/${body.id}`)).body;
    for (const [name, value] of Object.entries(more)) {
      if (name in read && value !== undefined && name !== "text") expect(read[name]).toEqual(value);
    }
    if ("content_base64" in more) expect(read.text).toBe("hello");
  });
});

describe("GET and DELETE of a document", () => {
  const ids = [
    "x",
    "doc_",
    "%00",
    "doc_%00",
    "..%2f..",
    "%ff",
    "a%20b",
    "x".repeat(4_000),
    "DOC_01arz3ndektsv4rrffq69g5fav",
  ];
  test.each(ids)("%s is not found", async (id) => {
    for (const method of ["GET", "DELETE"]) {
      const { status, body } = await gateway.call(method, `/v1/vault/documents/${id}`);
      expect([status, body.code]).toEqual([404, "not_found"]);
    }
  });

  test.each(["?payload=true", "?payloads=yes", "?payloads=1"])(
    "%s is not a parameter of DELETE",
    async (query) => {
      const path = `/v1/vault/documents/doc_01arz3ndektsv4rrffq69g5fav${query}`;
      const { status, body } = await gateway.call("DELETE", path);
      expect([status, body.code]).toEqual([422, "validation_failed"]);
    },
  );
});
