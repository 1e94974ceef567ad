import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { AGENT_SCOPES, write } from "../support/vault.ts";

let gateway: TestGateway;
/** Ids in the order of writing. */
const ids: string[] = [];
const SCOPES = ["support", "support/a", "supportx", "legal"] as const;

beforeAll(async () => {
  gateway = await startGateway();
  for (let at = 0; at < 24; at++) {
    const body = {
      title: `Note ${at}`,
      text: `Text ${at}.`,
      scope: SCOPES[at % SCOPES.length],
      ...(at % 3 === 0 ? { source_uri: `https://example.test/${at % 6}` } : {}),
    };
    ids.push((await write(gateway, body)).id);
  }
});
afterAll(() => gateway.stop());

interface Listed {
  readonly id: string;
  readonly scope: string;
  readonly source_uri: string | null;
}

async function list(query: string, token?: string): Promise<{ data: Listed[]; next_cursor: string | null }> {
  const options = token === undefined ? {} : { token };
  const { status, body } = await gateway.call("GET", `/v1/vault/documents${query}`, options);
  expect(status).toBe(200);
  return body;
}

async function pages(limit: number, more = "", token?: string): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page = await list(`?limit=${limit}${more}${cursor && `&cursor=${cursor}`}`, token);
    expect(page.data.length).toBeLessThanOrEqual(limit);
    found.push(...page.data.map(({ id }) => id));
    cursor = page.next_cursor;
  }
  return found;
}

const idsWhere = (keep: (at: number) => boolean) => ids.filter((_, at) => keep(at)).toReversed();
const scopeOf = (at: number) => SCOPES[at % SCOPES.length] as string;

describe("the list of documents", () => {
  test("is newest first, and contains no text", async () => {
    const { data, next_cursor } = await list("");
    expect(data.map(({ id }) => id)).toEqual(ids.toReversed());
    expect(next_cursor).toBeNull();
    expect(data.every((document) => !("text" in document))).toBe(true);
  });

  test.each([1, 5, 8, 23, 24, 200])("by pages of %i shows each document once, in order", async (limit) => {
    expect(await pages(limit)).toEqual(ids.toReversed());
  });

  test("by pages of one agent shows what that agent may see, in order", async () => {
    await gateway.agent("agent", { memory_scope: ["support", "legal"] });
    const token = await gateway.token({ agent: "agent", scopes: AGENT_SCOPES });
    const inside = idsWhere((at) => scopeOf(at) !== "supportx");
    for (const limit of [1, 4, 5, 100]) expect(await pages(limit, "", token)).toEqual(inside);
    expect(await pages(2, "&scope=support", token)).toEqual(
      idsWhere((at) => ["support", "support/a"].includes(scopeOf(at))),
    );
    expect(await pages(2, "&scope=supportx", token)).toEqual([]);
    expect(await pages(3, "&scope=/", token)).toEqual(inside);
  });

  test.each([
    ["support", ["support", "support/a"]],
    ["support/a", ["support/a"]],
    ["supportx", ["supportx"]],
    ["/", SCOPES],
    ["suppor", []],
    ["support/a/b", []],
  ] as const)("?scope=%s shows %j", async (scope, expected) => {
    const found = await pages(3, `&scope=${encodeURIComponent(scope)}`);
    expect(found).toEqual(idsWhere((at) => (expected as readonly string[]).includes(scopeOf(at))));
  });

  test("?source_uri= shows only documents from there", async () => {
    const uri = encodeURIComponent("https://example.test/3");
    expect(await pages(2, `&source_uri=${uri}`)).toEqual(idsWhere((at) => at % 6 === 3));
    expect(await pages(2, `&source_uri=${uri}&scope=legal`)).toEqual(
      idsWhere((at) => at % 6 === 3 && scopeOf(at) === "legal"),
    );
    expect(await pages(2, "&source_uri=https://example.test/")).toEqual([]);
  });

  test("a page's cursor still works when its last document is deleted", async () => {
    const body = { title: "Soon gone", text: "x", scope: "gone" };
    const made: string[] = [];
    for (let at = 0; at < 3; at++)
      made.push((await gateway.call("POST", "/v1/vault/documents", { body })).body.id);
    const first = await list("?limit=2&scope=gone");
    await gateway.call("DELETE", `/v1/vault/documents/${made[1]}`);
    const second = await list(`?limit=2&scope=gone&cursor=${first.next_cursor}`);
    expect(second.data.map(({ id }) => id)).toEqual([made[0] as string]);
    for (const id of [made[0], made[2]]) await gateway.call("DELETE", `/v1/vault/documents/${id}`);
  });

  test.each([
    ["a foreign cursor", "?cursor=abc", "/cursor"],
    [
      "a cursor of another list",
      `?cursor=${Buffer.from("task_01arz3ndektsv4rrffq69g5fav").toString("base64url")}`,
      "/cursor",
    ],
    ["a cursor with SQL", `?cursor=${Buffer.from("' OR 1=1 --").toString("base64url")}`, "/cursor"],
    ["no limit", "?limit=0", "/limit"],
    ["too high a limit", "?limit=201", "/limit"],
    ["a limit that is not a number", "?limit=ten", "/limit"],
    ["an empty source", "?source_uri=", "/source_uri"],
    ["an unknown parameter", "?agent=agent", "/agent"],
  ])("%s is refused, and the field is named", async (_, query, field) => {
    const { status, body } = await gateway.call("GET", `/v1/vault/documents${query}`);
    expect([status, body.code, body.errors[0].path]).toEqual([422, "validation_failed", field]);
  });
});
