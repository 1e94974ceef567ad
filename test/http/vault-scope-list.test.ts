/** `GET /v1/vault/scopes`: the contents of each scope, as far as the caller may see them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { AGENT_SCOPES, remove, write } from "../support/vault.ts";

setDefaultTimeout(60_000);

const clock = new FakeClock();
let gateway: TestGateway;

interface Scope {
  readonly scope: string;
  readonly documents: number;
  readonly characters: number;
  readonly updated_at: string;
}

/** A path of the greatest permitted length. */
const LONG = Array.from({ length: 16 }, (_, at) => "z".repeat(at === 0 ? 64 : 63)).join("/");
/** In byte order: `-` and `.` sort before the slash, digits and letters after it. */
const TEXTS: readonly (readonly [scope: string, ...texts: string[]])[] = [
  ["/", "At the root."],
  ["a", "One.", "Two and more."],
  ["a-b", "Beside it."],
  ["a.b", "Beside it too."],
  ["a/c", "Below."],
  ["a/c/d", "Further below.", "ü and 🚪"],
  ["a0", "Beside it, later."],
  ["b/x", "Without a scope above."],
  [LONG, "Deep."],
  ["z".repeat(65), "Behind it."],
];
const written = new Map<string, string>();

beforeAll(async () => {
  gateway = await startGateway({ clock });
  const gone = await write(gateway, { scope: "a/empty", text: "To be deleted." });
  for (const [scope, ...texts] of TEXTS.toReversed()) {
    for (const text of texts) await write(gateway, { scope, text });
    written.set(scope, new Date(clock.now()).toISOString());
    clock.advance(1_000);
  }
  await remove(gateway, gone.id);
});
afterAll(() => gateway.stop());

async function list(query = "", token?: string): Promise<{ data: Scope[]; next_cursor: string | null }> {
  const options = token === undefined ? {} : { token };
  const { status, body } = await gateway.call("GET", `/v1/vault/scopes${query}`, options);
  expect(status).toBe(200);
  return body;
}
const expected = (...scopes: string[]): Scope[] =>
  TEXTS.filter(([scope]) => scopes.includes(scope)).map(([scope, ...texts]) => ({
    scope,
    documents: texts.length,
    characters: texts.reduce((sum, text) => sum + text.length, 0),
    updated_at: written.get(scope) as string,
  }));
const EVERY = TEXTS.map(([scope]) => scope);

describe("refused", () => {
  test("without vault:read", async () => {
    const token = await gateway.token({ scopes: ["vault:write", "agents:read"] });
    const { status, body } = await gateway.call("GET", "/v1/vault/scopes", { token });
    expect([status, body.code]).toEqual([403, "scope_missing"]);
  });

  test.each([
    ["limit=0", "/limit"],
    ["agent=", "/agent"],
    ["scope=a", "/scope"],
    ["cursor=QQ", "/cursor"],
    ["cursor=Li4vYQ", "/cursor"],
  ])("for %s, and the field is named", async (query, path) => {
    const { status, body } = await gateway.call("GET", `/v1/vault/scopes?${query}`);
    expect([status, body.errors?.[0].path]).toEqual([422, path]);
  });

  test("for an agent that is unknown, or not the token's own", async () => {
    const unknown = await gateway.call("GET", "/v1/vault/scopes?agent=nobody");
    expect([unknown.status, unknown.body.code]).toEqual([404, "agent_not_found"]);
    await gateway.agent("one");
    const token = await gateway.token({ agent: "one", scopes: AGENT_SCOPES });
    const other = await gateway.call("GET", "/v1/vault/scopes?agent=nobody", { token });
    expect([other.status, other.body.code]).toEqual([403, "agent_forbidden"]);
  });
});

describe("the list of scopes", () => {
  test("is ordered by path, with each scope's own contents, and without empty ones", async () => {
    expect(await list()).toEqual({ data: expected(...EVERY), next_cursor: null });
  });

  test("counts a replaced document once, by its last version", async () => {
    const { id } = await write(gateway, { scope: "replaced", text: "Long before." });
    clock.advance(1_000);
    await write(gateway, { id, scope: "replaced", text: "Now." });
    const found = (await list()).data.find(({ scope }) => scope === "replaced");
    const updated_at = new Date(clock.now()).toISOString();
    expect(found).toEqual({ scope: "replaced", documents: 1, characters: 4, updated_at });
    await remove(gateway, id);
    expect((await list()).data).toEqual(expected(...EVERY));
  });

  test.each<[memory: readonly string[], ...seen: string[]]>([
    [["/"], ...EVERY],
    [["a"], "a", "a/c", "a/c/d"],
    [["a/c"], "a/c", "a/c/d"],
    [["b"], "b/x"],
    [["b/x", "a-b", "a0"], "a-b", "a0", "b/x"],
    [["a.b", "a", "a-b"], "a", "a-b", "a.b", "a/c", "a/c/d"],
    [["a", "a/c"], "a", "a/c", "a/c/d"],
    [["a/empty"]],
    [["nowhere"]],
  ])("shows what the memory %j covers, in pages of one or two", async (memory, ...seen) => {
    await gateway.agent("reader", { memory_scope: memory });
    const token = await gateway.token({ agent: "reader", scopes: AGENT_SCOPES });
    for (const [query, as] of [
      ["", token],
      ["&agent=reader", token],
      ["&agent=reader", undefined],
    ] as const) {
      for (const limit of [1, 2, 200]) {
        const found: Scope[] = [];
        for (let cursor: string | null = ""; cursor !== null; ) {
          const page = await list(`?limit=${limit}${query}${cursor && `&cursor=${cursor}`}`, as);
          expect(page.data.length).toBeLessThanOrEqual(limit);
          found.push(...page.data);
          cursor = page.next_cursor;
        }
        expect(found).toEqual(expected(...seen));
      }
    }
    await gateway.call("DELETE", "/v1/agents/reader");
  });

  test("covers one workspace", async () => {
    const elsewhere = await gateway.workspace("elsewhere");
    expect((await list("", elsewhere)).data).toEqual([]);
    await write(gateway, { scope: "theirs", text: "Theirs." }, elsewhere);
    expect((await list("", elsewhere)).data.map(({ scope }) => scope)).toEqual(["theirs"]);
    expect((await list()).data).toEqual(expected(...EVERY));
  });

  test("leaves one entry, which names the agent if one is given", async () => {
    await gateway.agent("asked");
    const answer = await gateway.call("GET", "/v1/vault/scopes?agent=asked");
    const { body } = await gateway.call("GET", `/v1/ledger/${answer.headers.get("gatehouse-ledger")}`);
    expect(body).toMatchObject({
      action: "vault.list",
      phase: "single",
      outcome: "succeeded",
      agent: "asked",
    });
  });
});
