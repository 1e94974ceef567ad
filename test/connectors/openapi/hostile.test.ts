import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../src/agents/index.ts";
import { FakeClock } from "../../support/clock.ts";
import { documentOf, type FakeApi, listOf, refusal, sourceOf, startApi } from "./api.ts";

let api: FakeApi;
beforeAll(() => {
  api = startApi();
});
afterAll(() => api.close());

const HEAD = {
  openapi: "3.1.0",
  info: { title: "x", version: "1" },
  servers: [{ url: "https://x.example" }],
};
const body = (schema: JsonObject) => ({ requestBody: { content: { "application/json": { schema } } } });
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });

function withSchemas(schemas: JsonObject, start: string): JsonObject {
  return { ...HEAD, paths: { "/x": { post: body(ref(start)) } }, components: { schemas } };
}

test("a document whose texts have a million slashes or underscores in a row is listed", async () => {
  const run = 1_000_000;
  const url = `https://x.example/${"/".repeat(run)}x`;
  const operation = { operationId: `x${"_".repeat(run)}x`, responses: {} };
  expect(await listOf({ ...HEAD, servers: [{ url }], paths: { "/x": { get: operation } } })).toHaveLength(1);
});

describe("a document is refused, naming its fault", () => {
  test.each<readonly [what: string, spec: string | JsonObject, says: string]>([
    ["no text", " ", "it is empty"],
    ["broken JSON", '{"openapi":', "it is not valid JSON"],
    ["broken YAML", "openapi: 3.1.0\npaths: [", "it is neither JSON nor valid YAML (line 2: "],
    ["a text", "hello", "it is not an object"],
    ["HTML", "<!DOCTYPE html><html></html>", "it is not an object"],
    ["a list", "[]", "it is not an object"],
    ["Swagger", { swagger: "2.0", paths: {} }, 'it is Swagger "2.0", an older format'],
    ["no version", { paths: {} }, 'its field "openapi", the version, is missing'],
    ["a number as the version", "openapi: 3.1\npaths: {}", 'its field "openapi" is not a text'],
    ["a future version", { openapi: "4.0.0", paths: {} }, 'its version "4.0.0" is not supported'],
    ["no paths", { openapi: "3.1.0" }, 'its field "paths" is missing'],
    ["__proto__", '{"openapi":"3.1.0","paths":{},"x":{"__proto__":{"a":1}}}', 'a field named "__proto__"'],
    ["__proto__ in YAML", "openapi: 3.1.0\npaths: {}\n__proto__: {a: 1}", 'a field named "__proto__"'],
    ["YAML that contains itself", "openapi: 3.1.0\npaths: &a { b: *a }", "or contains itself"],
    ["YAML's aliases of aliases", bombOfAliases(), "its YAML cannot be read"],
    [
      "many aliases",
      `openapi: 3.1.0\npaths: {}\nx: &a 1\ny: [${"*a,".repeat(101)}]`,
      "more than 100 aliases",
    ],
    ["keys that are collections", `openapi: 3.1.0\n${"? ".repeat(50)}a`, "nor valid YAML"],
    ["YAML nested too deep", `a: ${"[".repeat(20_000)}`, "it has more than 100 levels"],
    ["YAML of maps nested too deep", `a: ${"{a: ".repeat(20_000)}`, "it has more than 100 levels"],
    ["YAML of lists in lists", `${"- ".repeat(20_000)}a`, "it has more than 100 levels"],
    ["YAML with many lines", `openapi: 3.1.0\nx:\n${"- a\n".repeat(400_000)}`, "lines and items"],
    ["YAML with many items", `openapi: 3.1.0\nx: [${"1,".repeat(400_000)}]`, "lines and items"],
    [
      "YAML that aliases nest",
      `openapi: 3.1.0\npaths: {}\nx: &a ${flow(60, "1")}\ny: ${flow(60, "*a")}`,
      "it has more than 100 levels",
    ],
    ["large YAML", `openapi: 3.1.0\nx: ${"y".repeat(2 * 1_024 * 1_024)}`, "must be JSON"],
    [
      "JSON nested too deep",
      `{"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`,
      "it has more than 100 levels",
    ],
    [
      "JSON nested too deep with all fields",
      `{"openapi":"3.1.0","paths":{},"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`,
      "it has more than 100 levels",
    ],
    [
      "too many lists",
      `{"openapi":"3.1.0","paths":{},"x":[${"[],".repeat(500_000)}[]]}`,
      "more than 600000 members",
    ],
    [
      "YAML of too many items",
      `openapi: 3.1.0\npaths: {}\nx: {${"a: 1,".repeat(120_001)}}`,
      "its YAML has more than 120000 lines and items",
    ],
    [
      "an object of too many fields",
      { ...HEAD, paths: {}, x: Object.fromEntries(Array.from({ length: 10_001 }, (_, n) => [`k${n}`, 0])) },
      "more than 10000 fields",
    ],
  ])("%s", async (_, spec, says) => {
    const { fault, message } = await refusal(listOf(spec));
    expect(fault).toBe("invalid_answer");
    expect(message).toStartWith("The connector shop: the given ");
    expect(message).toContain(" is not an OpenAPI 3.0 or 3.1 document: ");
    expect(message).toContain(says);
    expect(message.length).toBeLessThan(1_100);
  });

  test.each([
    ["a file", "file:///etc/passwd"],
    ["an address", "http://127.0.0.1:9/schema.json"],
    ["a relative path", "./schemas.yaml#/Pet"],
    ["an absolute path", "/etc/passwd"],
  ])("a reference to %s is refused by name", async (_, target) => {
    const { message } = await refusal(listOf(documentOf(body({ $ref: target }))));
    expect(message).toContain(`its reference "${target}" leads to another document, which is never read`);
  });

  test.each([
    ["no operations", { ...HEAD, paths: { "/x": { summary: "x" } } }, "it has no operations"],
    ["a reference to nothing", withSchemas({}, "None"), "leads to nothing in the document"],
    ["a reference to an inherited property", withSchemas({}, "toString"), "leads to nothing in the document"],
    ["a reference with too many steps", withSchemas({}, "a/".repeat(1_000)), "is too long"],
    ["a reference to itself", withSchemas({ A: ref("A") }, "A"), "leads back to itself"],
    [
      "references in a circle through one value",
      withSchemas({ A: { properties: { b: ref("B") }, anyOf: [ref("B")] }, B: { allOf: [ref("A")] } }, "A"),
      "leads back to itself",
    ],
    ["no server", { ...documentOf({}), servers: [] }, "set base_url"],
    ["a relative server", { ...documentOf({}), servers: [{ url: "/v1" }] }, "set base_url"],
    [
      "a server with a password",
      { ...documentOf({}), servers: [{ url: "https://a:b@x.example" }] },
      "a password",
    ],
    [
      "another kind of server",
      { ...documentOf({}), servers: [{ url: "file:///etc" }] },
      "not an http or https URL",
    ],
    [
      "an unknown location",
      documentOf({ parameters: [{ name: "a", in: "body" }] }),
      'has the unknown location "body"',
    ],
    [
      "an unknown style",
      documentOf({ parameters: [{ name: "a", in: "query", style: "simple" }] }),
      '"simple"',
    ],
    ["a parameter __proto__", documentOf({ parameters: [{ name: "__proto__", in: "query" }] }), "__proto__"],
    [
      "an invalid header",
      documentOf({ parameters: [{ name: "a:b\r\n", in: "header" }] }),
      "a valid header name",
    ],
    ["a path with a step up", documentOf({}, "/a/../../admin"), "a step such as"],
    ["a path with an encoded step up", documentOf({}, "/a/%2e%2E/admin"), "a step such as"],
    ["a path with a query", documentOf({}, "/a?b=c"), "a character that is not allowed in a path"],
    ["a path with a backslash", documentOf({}, "/a\\..\\b"), "a character that is not allowed in a path"],
    ["TRACE", documentOf({}, "/a", "trace"), "TRACE is never sent"],
  ])("%s", async (_, spec, says) => {
    const { fault, message } = await refusal(listOf(spec));
    expect(fault).toBe("invalid_answer");
    expect(message).toContain(says);
  });

  test("more than 2,000 operations, even very many", async () => {
    const paths = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`/p${n}`, { get: {} }]));
    expect(await listOf({ ...HEAD, paths: paths(2_000) })).toHaveLength(2_000);
    const { message } = await refusal(listOf({ ...HEAD, paths: paths(2_001) }));
    expect(message).toContain("it has more than 2000 operations");
  });
});

describe("schemas that expand", () => {
  /** Each level refers ten times to the one below: 10^12 schemas when expanded. */
  function bomb(levels: number, beside: JsonObject): JsonObject {
    const schemas: JsonObject = { L0: { type: "string" } };
    for (let level = 1; level <= levels; level++) {
      const each = { ...ref(`L${level - 1}`), ...beside };
      schemas[`L${level}`] = {
        properties: Object.fromEntries([..."abcdefghij"].map((name) => [name, each])),
      };
    }
    return withSchemas(schemas, `L${levels}`);
  }

  test.each([
    ["alone", {}],
    ["with a description next to each", { description: "d" }],
  ])("are each written once: references %s", async (_, beside) => {
    const [tool] = await listOf(bomb(12, beside));
    const text = JSON.stringify(tool?.inputSchema);
    expect(text.length).toBeLessThan(16_384);
    expect(text).toContain('"$ref":"#/$defs/L0"');
  });

  test("of more than 64 KiB: the operation is omitted, the others stay", async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, n) => [`p${n}`, { title: "t".repeat(80) }]),
    );
    const paths = { "/large": { post: body({ properties }) }, "/small": { get: {} } };
    const tools = await listOf({ ...HEAD, paths });
    expect(tools.map(({ name }) => name)).toEqual(["get_small"]);
    const { message } = await refusal(listOf({ ...HEAD, paths: { "/large": paths["/large"] } }));
    expect(message).toContain("POST /large: the schema of its arguments is larger than 65536 bytes");
  });

  test("large ones that a thousand operations share are refused as a whole", async () => {
    const properties = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`p${n}`, {}]));
    const paths = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, n) => [`/p${n}`, { post: body(ref("Large")), get: {} }]).slice(
        0,
        500,
      ),
    );
    const document = { ...HEAD, paths, components: { schemas: { Large: { properties } } } };
    const tools = await listOf(document).catch((error: unknown) => error);
    expect(String(tools)).toContain("the targets of its references are too large in total");
  });

  test("schemas that refer to others are resolved completely; references to references are not", async () => {
    const schemas: JsonObject = { C0: { type: "integer" }, R0: { type: "integer" } };
    for (let n = 1; n <= 300; n++) {
      schemas[`C${n}`] = { properties: { next: ref(`C${n - 1}`) } };
      schemas[`R${n}`] = ref(`R${n - 1}`);
    }
    const [tool] = await listOf(withSchemas(schemas, "C300"));
    expect(JSON.stringify(tool?.inputSchema)).toContain('"C0":{"type":"integer"}');
    expect(JSON.stringify(await listOf(withSchemas(schemas, "R5")))).toContain('"body":{"type":"integer"}');
    expect((await refusal(listOf(withSchemas(schemas, "R300")))).message).toContain(
      "leads to nothing in the document",
    );
  });
});

describe("a document to be fetched", () => {
  test.each<readonly [what: string, answer: () => Response, fault: string, says: string]>([
    ["does not exist", () => new Response("no", { status: 404 }), "refused", "answered with status 404"],
    [
      "is too large",
      () => new Response("x".repeat(32 * 1_024 * 1_024 + 1)),
      "too_large",
      "larger than 33554432 bytes",
    ],
    [
      "is not text",
      () => new Response(new Uint8Array([0xff, 0xfe, 0])),
      "invalid_answer",
      "is not UTF-8 text",
    ],
    ["is another page", () => new Response("<html>"), "invalid_answer", "it is not an object"],
    [
      "is elsewhere",
      () => new Response(null, { status: 302, headers: { location: "https://elsewhere.example/" } }),
      "refused",
      "redirects to another host",
    ],
  ])("%s", async (_, answer, fault, says) => {
    api.answer(answer);
    const found = await refusal(listOf(`${api.url}/openapi.json?key=hidden`));
    expect(found.fault).toBe(fault as typeof found.fault);
    expect(found.message).toContain(says);
    expect(found.message).toStartWith("The connector shop: ");
    expect(found.message).not.toContain("hidden");
  });

  test("never comes: the time limit ends it", async () => {
    const clock = new FakeClock();
    const asked = Promise.withResolvers<void>();
    api.answer((request) => {
      asked.resolve();
      return new Promise((resolve) =>
        request.signal.addEventListener("abort", () => resolve(new Response())),
      );
    });
    const listing = refusal(sourceOf(api.url, { clock, timeoutMs: 500 }).list(new AbortController().signal));
    await asked.promise;
    clock.advance(500);
    expect(await listing).toMatchObject({ fault: "timeout" });
  });
});

/** Nested lists around a value, as YAML on one line. */
function flow(levels: number, value: string): string {
  return "[".repeat(levels) + value + "]".repeat(levels);
}

function bombOfAliases(): string {
  const levels = ["a: &a [x,x,x,x,x,x,x,x,x]"];
  for (const [below, name] of ["ab", "bc", "cd", "de"]) {
    levels.push(`${name}: &${name} [${Array(9).fill(`*${below}`).join(",")}]`);
  }
  return `openapi: 3.1.0\npaths: {}\n${levels.join("\n")}`;
}
