import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { dispatch, ended, held, openEvents, type Stage, startStage } from "../tasks/support.ts";

let stage: Stage;
let foreign: string;
let bound: string;
/**
 * Ids in the order of dispatch: a succeeded, failed, cancelled, running and queued task, and one of another agent.
 */
const ids: string[] = [];

beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] }, limits: { concurrent_tasks: 1, enforcement: "enforced" } });
  const { gateway, upstream } = stage;
  await gateway.agent("one");
  await gateway.agent("two");
  upstream.script("a", (_request, call) =>
    call === 0 ? { toolCalls: [{ name: "time__now", arguments: {} }] } : { chunks: ["ok"] },
  );
  ids.push(await dispatch(gateway, { agent: "one", tools: ["time.now"] }));
  await ended(gateway, ids[0] ?? "");
  upstream.script("a", { status: 500 });
  ids.push(await dispatch(gateway, { agent: "one" }));
  await ended(gateway, ids[1] ?? "");
  const hold = held();
  upstream.script("a", hold.script);
  const running = await dispatch(gateway, { agent: "one" });
  await hold.asked;
  const cancelled = await dispatch(gateway, { agent: "one" });
  await gateway.call("POST", `/v1/tasks/${cancelled}/cancel`);
  ids.push(
    running,
    cancelled,
    await dispatch(gateway, { agent: "one" }),
    await dispatch(gateway, { agent: "two" }),
  );
  foreign = await gateway.workspace("foreign");
  bound = await gateway.token({ agent: "two" });
});
afterAll(() => stage.stop());

const list = async (query = "", token?: string) => {
  const answer = await stage.gateway.call("GET", `/v1/tasks${query}`, token === undefined ? {} : { token });
  expect(answer.status).toBe(200);
  return answer.body as { data: { id: string; status: string }[]; next_cursor: string | null };
};
const named = (...indexes: number[]) => indexes.map((index) => ids[index] ?? "");

describe("a list is refused for", () => {
  test.each([
    "?status=done",
    "?status=",
    "?limit=0",
    "?limit=201",
    "?limit=x",
    "?cursor=x",
    "?agent=",
    "?prompt=hi",
    "?agent=a&agent=b",
  ])("%s", async (query) => {
    const answer = await stage.gateway.call("GET", `/v1/tasks${query}`);
    expect([answer.status, answer.body.code]).toEqual([422, "validation_failed"]);
  });

  test("a token without tasks:read, and no token", async () => {
    const token = await stage.gateway.token({ scopes: ["tasks:write"] });
    expect((await stage.gateway.call("GET", "/v1/tasks", { token })).body.code).toBe("scope_missing");
    expect((await stage.gateway.call("GET", "/v1/tasks", { token: null })).body.code).toBe("unauthenticated");
  });
});

const FILTERS: [query: string, indexes: number[]][] = [
  ["", [5, 4, 3, 2, 1, 0]],
  ["?agent=one", [4, 3, 2, 1, 0]],
  ["?agent=two", [5]],
  ["?agent=nobody", []],
  ["?status=queued", [5, 4]],
  ["?status=running", [2]],
  ["?status=awaiting_approval", []],
  ["?status=succeeded", [0]],
  ["?status=failed", [1]],
  ["?status=cancelled", [3]],
  ["?status=queued&agent=one", [4]],
];

test.each(FILTERS)("the list %s contains what it asks for, newest first", async (...[query, indexes]) => {
  const { data, next_cursor } = await list(query);
  expect(data.map(({ id }) => id)).toEqual(named(...indexes));
  expect(next_cursor).toBeNull();
});

test("a task in the list equals the task read by id, including tools", async () => {
  const { data } = await list();
  for (const task of data) {
    expect(task).toEqual((await stage.gateway.call("GET", `/v1/tasks/${task.id}`)).body);
  }
});

test.each([1, 2, 4, 5, 6, 200])("pages of %d contain every task once", async (limit) => {
  const seen: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const page = await list(`?limit=${limit}${cursor === null ? "" : `&cursor=${cursor}`}`);
    seen.push(...page.data.map(({ id }) => id));
    cursor = page.next_cursor;
    pages++;
  } while (cursor !== null);
  expect(seen).toEqual(named(5, 4, 3, 2, 1, 0));
  expect(pages).toBe(Math.ceil(6 / limit));
});

test("a token that acts as an agent sees, streams and cancels only that agent's tasks", async () => {
  expect((await list("", bound)).data.map(({ id }) => id)).toEqual(named(5));
  expect((await list("?agent=one", bound)).data).toEqual([]);
  const [mine = "", theirs = ""] = named(5, 2);
  for (const [method, path] of [
    ["GET", ""],
    ["GET", "/events"],
    ["POST", "/cancel"],
  ] as const) {
    const answer = await stage.gateway.call(method, `/v1/tasks/${theirs}${path}`, { token: bound });
    expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
  }
  expect((await stage.gateway.call("GET", `/v1/tasks/${mine}`, { token: bound })).status).toBe(200);
});

test("another workspace's tasks are not found", async () => {
  expect((await list("", foreign)).data).toEqual([]);
  for (const id of ids) {
    for (const [method, path] of [
      ["GET", ""],
      ["GET", "/events"],
      ["POST", "/cancel"],
    ] as const) {
      const answer = await stage.gateway.call(method, `/v1/tasks/${id}${path}`, { token: foreign });
      expect([answer.status, answer.body.code]).toEqual([404, "not_found"]);
    }
  }
});

test("invalid ids answer 404", async () => {
  for (const id of [
    "x",
    "task_",
    "task_zzzzzzzzzzzzzzzzzzzzzzzzzz",
    "tok_0000000000000000000000000a",
    "%00",
    "..%2f",
  ]) {
    expect((await stage.gateway.call("GET", `/v1/tasks/${id}`)).status).toBe(404);
    expect((await openEvents(stage.gateway, id)).status).toBe(404);
  }
});
