import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const AGENTS = 7;
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
  // Created in an order that differs from the order of names.
  for (const index of [3, 0, 6, 1, 5, 2, 4]) await gateway.agent(`agent-${index}`);
  for (let index = 0; index < 6; index++) await gateway.token({ name: `t${index}`, scopes: ["tasks:read"] });
  for (let index = 0; index < 5; index++) {
    await gateway.call("POST", "/v1/tasks", { body: { agent: `agent-${index % 2}`, prompt: `p${index}` } });
  }
});
afterAll(() => gateway.stop());

type Item = Record<string, unknown>;

/** Reads and returns all pages. Fails if a page is longer than requested or the pages do not end. */
async function walk(path: string, limit: number): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | null = "";
  for (let pages = 0; cursor !== null; pages++) {
    if (pages > 100) throw new Error("the pages do not end");
    const more: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body } = await gateway.call("GET", `${path}limit=${limit}${more}`);
    expect(status).toBe(200);
    const forClients = path.startsWith("/v1/models") ? ["object", "has_more", "first_id", "last_id"] : [];
    expect(Object.keys(body).sort()).toEqual([...forClients, "data", "next_cursor"].sort());
    expect(body.data.length).toBeLessThanOrEqual(limit);
    if (body.next_cursor !== null) expect(body.data).toHaveLength(limit);
    items.push(...body.data);
    cursor = body.next_cursor;
  }
  return items;
}

describe("walking the pages returns each item exactly once, in the list's order", () => {
  const keys = (items: Item[], key: string) => items.map((item) => item[key]);
  const sorted = (values: unknown[]) => [...values].sort();

  test.each([1, 2, 3, 6, 7, 8, 200])("agents by name, %d at a time", async (limit) => {
    const names = keys(await walk("/v1/agents?", limit), "name");
    expect(names).toEqual(Array.from({ length: AGENTS }, (_, index) => `agent-${index}`));
  });
  test.each([1, 3, 200])("tasks newest first, %d at a time", async (limit) => {
    const tasks = await walk("/v1/tasks?", limit);
    expect(keys(tasks, "prompt")).toEqual(["p4", "p3", "p2", "p1", "p0"]);
    const some = await walk("/v1/tasks?agent=agent-0&", limit);
    expect(keys(some, "prompt")).toEqual(["p4", "p2", "p0"]);
  });
  test.each([1, 4, 200])("tokens newest first, %d at a time", async (limit) => {
    expect(keys(await walk("/v1/tokens?", limit), "name")).toEqual([
      "t5",
      "t4",
      "t3",
      "t2",
      "t1",
      "t0",
      "admin",
    ]);
  });
  test.each([1, 200])("models by name and tiers by number, %d at a time", async (limit) => {
    const models = keys(await walk("/v1/models?", limit), "name");
    expect(models).toEqual(sorted(models));
    expect(new Set(models).size).toBe(models.length);
    expect(keys(await walk("/v1/tiers?", limit), "tier")).toEqual([1, 2]);
  });
  test("the ledger oldest first, while each page read adds an entry", async () => {
    const before = Number((await gateway.call("GET", "/v1/agents")).headers.get("gatehouse-ledger"));
    const seqs = keys(await walk("/v1/ledger?action=agent.create&", 2), "seq");
    expect(seqs).toHaveLength(AGENTS);
    expect(seqs).toEqual([...seqs].sort((a, b) => Number(a) - Number(b)));
    const all = keys(await walk("/v1/ledger?order=desc&", 50), "seq");
    expect(all).toEqual(Array.from({ length: all.length }, (_, index) => all.length - index));
    expect(all.length).toBeGreaterThan(before);
  });
});

test("an item deleted or created between two pages neither hides nor repeats another", async () => {
  const first = await gateway.call("GET", "/v1/agents?limit=3");
  await gateway.call("DELETE", "/v1/agents/agent-2");
  await gateway.agent("agent-00");
  const next = await gateway.call("GET", `/v1/agents?limit=200&cursor=${first.body.next_cursor}`);
  expect(next.body.data.map((agent: Item) => agent.name)).toEqual([
    "agent-3",
    "agent-4",
    "agent-5",
    "agent-6",
  ]);
  await gateway.call("DELETE", "/v1/agents/agent-00");
  await gateway.agent("agent-2");
});

test("a page has 50 when no limit is given", async () => {
  const { body } = await gateway.call("GET", "/v1/ledger");
  for (let index = 0; index < 55 - body.data.length; index++) await gateway.call("GET", "/v1/models");
  expect((await gateway.call("GET", "/v1/ledger")).body.data).toHaveLength(50);
});

describe("a query is refused, naming the parameter, for", () => {
  const LISTS = ["/v1/agents", "/v1/tasks", "/v1/tokens", "/v1/models", "/v1/tiers", "/v1/ledger"];
  const BAD: readonly [name: string, query: string, path: string][] = [
    ["a limit of 0", "limit=0", "/limit"],
    ["a negative limit", "limit=-1", "/limit"],
    ["a limit that is not an integer", "limit=1.5", "/limit"],
    ["a limit in another notation", "limit=1e1", "/limit"],
    ["a limit that is not a number", "limit=ten", "/limit"],
    ["an empty limit", "limit=", "/limit"],
    ["a limit given twice", "limit=1&limit=2", "/limit"],
    ["an empty cursor", "cursor=", "/cursor"],
    ["an invalid cursor", "cursor=%21%21", "/cursor"],
    ["an unknown parameter", "page=2", "/page"],
    ["an unknown parameter among good ones", "limit=1&offset=2", "/offset"],
    ["a parameter in another case", "Limit=1", "/Limit"],
    ["__proto__", "__proto__=1", "/__proto__"],
    ["constructor", "constructor=1", "/constructor"],
  ];
  test.each(BAD)("%s", async (_, query, path) => {
    for (const list of LISTS) {
      const answer = await gateway.call("GET", `${list}?${query}`);
      expect([list, answer.status, answer.body.code]).toEqual([list, 422, "validation_failed"]);
      expect(answer.body.errors.map((error: Item) => error.path)).toEqual([path]);
    }
  });

  test.each([
    ["/v1/agents", 201],
    ["/v1/tasks", 201],
    ["/v1/tokens", 201],
    ["/v1/models", 1_001],
    ["/v1/tiers", 201],
    ["/v1/ledger", 201],
  ])("%s: a limit of %d", async (list, limit) => {
    const answer = await gateway.call("GET", `${list}?limit=${limit}`);
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
    expect(answer.body.errors.map((error: Item) => error.path)).toEqual(["/limit"]);
    expect((await gateway.call("GET", `${list}?limit=${limit - 1}`)).status).toBe(200);
  });

  test.each([
    ["/v1/agents", "../etc"],
    ["/v1/agents", "Upper"],
    ["/v1/tasks", "agent-1"],
    ["/v1/tasks", "tok_01m7xzhqw9enjb8typxj8ze7zz"],
    ["/v1/tokens", "task_01m7xzhqw9enjb8typxj8ze7zz"],
    ["/v1/tiers", "one"],
    ["/v1/ledger", "0"],
    ["/v1/ledger", "-1"],
    ["/v1/ledger", "1 OR 1=1"],
    ["/v1/ledger", "1e3"],
  ])("%s: a cursor that contains %j", async (list, key) => {
    const cursor = Buffer.from(key).toString("base64url");
    const answer = await gateway.call("GET", `${list}?cursor=${cursor}`);
    expect([answer.status, answer.body.errors[0].path]).toEqual([422, "/cursor"]);
  });

  test.each(["/v1/agents/agent-0", "/v1/workspace", "/v1/ledger/1"])("any parameter of %s", async (path) => {
    const answer = await gateway.call("GET", `${path}?verbose=true`);
    expect([answer.status, answer.body.errors[0].path]).toEqual([422, "/verbose"]);
  });

  test("limits of 1 and of 200 are accepted", async () => {
    for (const list of LISTS) {
      expect((await gateway.call("GET", `${list}?limit=1`)).status).toBe(200);
      expect((await gateway.call("GET", `${list}?limit=200`)).status).toBe(200);
    }
  });
});
