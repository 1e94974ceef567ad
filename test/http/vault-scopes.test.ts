import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Answered, startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("steady");
  await gateway.call("POST", "/v1/vault/documents", {
    body: { title: "Legal", text: "A secret of the legal department.", scope: "legal" },
  });
});
afterAll(() => gateway.stop());

const HOSTILE: readonly (readonly [name: string, path: string])[] = [
  ["nothing", ""],
  ["a step up", "support/../legal"],
  ["a step up at the end", "support/.."],
  ["a step up at the start", "../legal"],
  ["a step nowhere", "support/./legal"],
  ["two slashes", "//"],
  ["an empty segment", "support//legal"],
  ["a slash at the start", "/support"],
  ["a trailing slash", "support/"],
  ["a capital", "Support"],
  ["a Cyrillic o", "supp\u043ert"],
  ["a full-width s", "\uff53upport"],
  ["a combining accent", "suppo\u0301rt"],
  ["a Turkish dotless i", "b\u0131lling"],
  ["zero width", "sup\u200bport"],
  ["a soft hyphen", "sup\u00adport"],
  ["right-to-left text", "support\u202e"],
  ["NUL", "support\0"],
  ["NUL and other control characters", "support\0/legal"],
  ["an encoded step up", "%2e%2e"],
  ["an encoded slash", "support%2flegal"],
  ["a backslash", "support\\legal"],
  ["white space at the start", " support"],
  ["white space at the end", "support "],
  ["a line break at the end", "support\n"],
  ["a wildcard", "*"],
  ["a trailing wildcard", "support/*"],
  ["SQL's wildcard", "sup%"],
  ["SQL", "support' OR '1'='1"],
  ["a scheme", "file:///etc"],
  ["a home", "~"],
  ["17 segments", Array(17).fill("a").join("/")],
  ["2,000 characters", "a".repeat(2_000)],
  ["16 segments of too many characters", Array(16).fill("a".repeat(125)).join("/")],
];
const WRONG_TYPES: readonly (readonly [name: string, value: unknown])[] = [
  ["null", null],
  ["a number", 1],
  ["true", true],
  ["an object", { path: "support" }],
  ["a list in a list", [["support"]]],
];

/** Every place that accepts a scope, and the field that an error must name. */
const PLACES: readonly (readonly [name: string, path: RegExp, ask: (scope: unknown) => Promise<Answered>])[] =
  [
    [
      "an agent's memory",
      /^\/memory_scope$/,
      (scope) =>
        gateway.call("POST", "/v1/agents", { body: { name: "hostile", owner: "x", memory_scope: scope } }),
    ],
    [
      "one of an agent's paths",
      /^\/memory_scope\/1(\/0)?$/,
      (scope) =>
        gateway.call("POST", "/v1/agents", {
          body: { name: "hostile", owner: "x", memory_scope: ["support", scope] },
        }),
    ],
    [
      "a changed agent's memory",
      /^\/memory_scope$/,
      (scope) => gateway.call("PATCH", "/v1/agents/steady", { body: { memory_scope: scope } }),
    ],
    [
      "a document's place",
      /^\/scope$/,
      (scope) => gateway.call("POST", "/v1/vault/documents", { body: { title: "T", text: "x", scope } }),
    ],
    [
      "a search's scopes",
      /^\/scopes\/0(\/0)?$/,
      (scope) => gateway.call("POST", "/v1/vault/search", { body: { query: "secret", scopes: [scope] } }),
    ],
    [
      "one of a search's scopes",
      /^\/scopes\/1(\/0)?$/,
      (scope) =>
        gateway.call("POST", "/v1/vault/search", { body: { query: "secret", scopes: ["support", scope] } }),
    ],
  ];

async function everythingMade(): Promise<string> {
  const answers = await Promise.all(
    ["/v1/agents?limit=200", "/v1/vault/documents?limit=200"].map((path) => gateway.call("GET", path)),
  );
  return JSON.stringify(answers.map(({ body }) => body));
}

describe.each(PLACES)("%s", (name, field, ask) => {
  test.each(HOSTILE)("%s is refused, the field is named, and nothing is created", async (_, scope) => {
    await expectRefused(scope);
  });

  // An agent's memory may also be a list of paths.
  const types = WRONG_TYPES.filter(([type]) => !(type === "a list in a list" && /memory$/.test(name)));
  test.each(types)("%s is refused", async (_, value) => {
    await expectRefused(value);
  });

  async function expectRefused(scope: unknown): Promise<void> {
    const before = await everythingMade();
    const { status, body } = await ask(scope);
    expect([status, body.code]).toEqual([422, "validation_failed"]);
    expect(body.errors.some(({ path }: { path: string }) => field.test(path))).toBe(true);
    expect(JSON.stringify(body)).not.toContain("A secret");
    expect(await everythingMade()).toBe(before);
  }
});

describe("a list's ?scope=", () => {
  test.each(HOSTILE)("%s is refused, and the field is named", async (_, scope) => {
    const { status, body } = await gateway.call(
      "GET",
      `/v1/vault/documents?scope=${encodeURIComponent(scope)}`,
    );
    expect([status, body.code, body.errors?.[0]?.path]).toEqual([422, "validation_failed", "/scope"]);
  });

  test.each([
    ["given twice", "?scope=support&scope=legal"],
    ["as a list", "?scope[]=legal"],
    ["in capitals", "?SCOPE=legal"],
    ["encoded twice", "?scope=support%252f..%252flegal"],
  ])("%s is refused", async (_, query) => {
    const { status, body } = await gateway.call("GET", `/v1/vault/documents${query}`);
    expect([status, body.code]).toEqual([422, "validation_failed"]);
  });

  test("an encoded slash is a slash", async () => {
    const body = { title: "Deep", text: "Deep.", scope: "deep/down" };
    const { id } = (await gateway.call("POST", "/v1/vault/documents", { body })).body;
    const { data } = (await gateway.call("GET", "/v1/vault/documents?scope=deep%2Fdown")).body;
    expect(data.map((each: { id: string }) => each.id)).toEqual([id]);
  });
});

test("an agent's boundary must not be empty, and has at most 32 paths", async () => {
  for (const [memory_scope, status] of [
    [[], 422],
    [Array.from({ length: 33 }, (_, at) => `s${at}`), 422],
    [Array.from({ length: 32 }, (_, at) => `s${at}`), 201],
  ] as const) {
    const body = { name: "many", owner: "x", memory_scope };
    expect((await gateway.call("POST", "/v1/agents", { body })).status).toBe(status);
  }
});
