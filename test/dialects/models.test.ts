/** GET /v1/models for all clients: OpenAI's, Anthropic's, the console's and others'. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { type DialectStage, openDialectStage } from "./support.ts";

const ALL = [
  ...["best", "gpt-5", "other/claude", "tier:1", "tier:2", "tier:3"],
  ...["up/first", "up/large", "up/meta/llama", "up/priced", "up/second"],
];
/** What the agent `clerk` may use: tier 1, and models that are in no tier. */
const CLERKS = ["gpt-5", "tier:1", "up/first", "up/meta/llama", "up/second"];

let stage: DialectStage;
/** A token without an agent that may call models. */
let caller: string;
beforeAll(async () => {
  stage = await openDialectStage({ prices: "  up/meta/llama: { input: 3, output: 4 }\n" });
  caller = await stage.gateway.token({ scopes: ["models:call"] });
});
afterAll(() => stage.stop());

function openai(apiKey = caller): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${stage.gateway.url}/v1`, maxRetries: 0 });
}

function anthropic(apiKey = caller): Anthropic {
  return new Anthropic({ apiKey, baseURL: stage.gateway.url, maxRetries: 0 });
}

async function ids(models: AsyncIterable<{ id: string }>): Promise<string[]> {
  const found: string[] = [];
  for await (const { id } of models) found.push(id);
  return found;
}

async function thrown(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => "nothing",
    (error: unknown) => error,
  );
}

const list = (query: string, token = caller) => stage.gateway.call("GET", `/v1/models${query}`, { token });

describe("refused", () => {
  test("without a token, and with a token that has neither scope, in each client's format", async () => {
    const other = await stage.gateway.token({ scopes: ["tasks:read"] });
    expect(await thrown(openai("gth_none").models.list())).toMatchObject({
      status: 401,
      code: "invalid_token",
      type: "authentication_error",
    });
    expect(await thrown(openai(other).models.list())).toMatchObject({
      status: 403,
      code: "scope_missing",
      message: expect.stringContaining("agents:read or models:call"),
    });
    expect(await thrown(Promise.resolve(anthropic("gth_none").models.list()))).toMatchObject({
      status: 401,
      error: { type: "error", error: { type: "authentication_error" }, request_id: expect.any(String) },
    });
    expect(await thrown(Promise.resolve(anthropic(other).models.list()))).toMatchObject({
      status: 403,
      error: { error: { type: "permission_error" } },
    });
    const { headers, body, status } = await list("", other);
    expect([status, headers.get("content-type"), body.code]).toEqual([
      403,
      "application/problem+json",
      "scope_missing",
    ]);
    expect(headers.get("gatehouse-code")).toBe("scope_missing");
  });

  test("a model that does not exist is 404 model_not_found for each client", async () => {
    expect(await thrown(openai().models.retrieve("nobody-99x"))).toMatchObject({
      ...{ status: 404, code: "model_not_found", type: "invalid_request_error" },
      message: expect.stringContaining("nobody-99x"),
    });
    expect(await thrown(anthropic().models.retrieve("nobody/claude"))).toMatchObject({
      status: 404,
      error: { error: { type: "not_found_error" } },
    });
    for (const path of ["nobody", "nobody/x", "nobody%2Fx", "up%252Ffirst", "tier:9", "a%2F..%2Fb"]) {
      const answer = await list(`/${path}`);
      expect([path, answer.status, answer.body.code]).toEqual([path, 404, "model_not_found"]);
    }
  });

  test.each([
    ["limit=0", "/limit"],
    ["limit=1001", "/limit"],
    ["cursor=%21", "/cursor"],
    ["after_id=", "/after_id"],
    ["after_id=a&before_id=b", "/before_id"],
    ["after_id=a&cursor=YQ", "/after_id"],
    ["order=asc", "/order"],
  ])("the query %s", async (query, path) => {
    const { status, body } = await list(`?${query}`);
    expect([status, body.code, body.errors[0].path]).toEqual([422, "validation_failed", path]);
  });

  test("an alias, a tier or an unlisted model outside the policy, as if it did not exist", async () => {
    for (const name of ["best", "tier:2", "large", "up/never-1"]) {
      expect((await list(`/${name}`, stage.clerk)).body).toMatchObject({ code: "model_not_found" });
      expect((await list(`/${name}`)).body).toMatchObject({ id: name, allowed: true });
    }
    // A listed model is shown, marked.
    expect((await list("/up/large", stage.clerk)).body).toMatchObject({ id: "up/large", allowed: false });
  });

  test("an agent named by a token that may not act as it, or by another workspace", async () => {
    const headers = { "gatehouse-agent": "clerk" };
    const ask = (token: string) => stage.gateway.call("GET", "/v1/models", { token, headers });
    expect((await ask(caller)).body).toMatchObject({ code: "scope_missing" });
    const both = await stage.gateway.token({ scopes: ["models:call", "tasks:write"] });
    const own = await ask(both);
    expect(own.body.data.filter(allowed).map(idOf)).toEqual(CLERKS);
    const other = await stage.gateway.workspace("elsewhere");
    expect((await ask(other)).body).toMatchObject({ code: "agent_not_found" });
    await stage.gateway.agent("second");
    const second = await stage.gateway.token({ agent: "second" });
    expect((await ask(second)).body).toMatchObject({ code: "agent_forbidden" });
  });
});

const allowed = (model: { allowed: boolean }) => model.allowed;
const idOf = (model: { id: string }) => model.id;

test("the list has the fields of OpenAI and Anthropic and our own", async () => {
  const { status, body, headers } = await list("");
  expect(status).toBe(200);
  expect(body).toMatchObject({
    ...{ object: "list", has_more: false, first_id: "best", last_id: "up/second", next_cursor: null },
  });
  expect(headers.get("x-request-id")).toBe(headers.get("gatehouse-request-id"));
  expect(body.data.map(idOf)).toEqual(ALL);
  const rows = new Map(body.data.map((model: { id: string }) => [model.id, model]));
  const since = { created: expect.any(Number), created_at: expect.stringMatching(/^20.*Z$/) };
  expect(rows.get("up/priced")).toEqual({
    ...{ id: "up/priced", object: "model", type: "model", ...since },
    ...{ owned_by: "up", display_name: "up/priced", name: "up/priced", provider: "up", alias_of: null },
    ...{ tiers: [2], price: { input: 1, output: 2 }, price_origin: "config", allowed: true },
  });
  expect(rows.get("gpt-5")).toEqual({
    ...{ id: "gpt-5", object: "model", type: "model", ...since },
    ...{ owned_by: "gatehouse", display_name: "gpt-5", name: "gpt-5", provider: null, alias_of: "tier:1" },
    ...{ tiers: [1], price: null, price_origin: null, allowed: true },
  });
  expect(rows.get("tier:2")).toMatchObject({ display_name: "large", owned_by: "gatehouse", alias_of: null });
  const [first] = body.data;
  expect(Date.parse(first.created_at)).toBe(first.created * 1_000);
});

test("every name that is listed as allowed can be retrieved, and no other workspace affects the result", async () => {
  const other = await stage.gateway.workspace("third");
  const headers = { authorization: `Bearer ${other}`, "content-type": "application/json" };
  const made = await fetch(`${stage.gateway.url}/v1/agents`, {
    method: "POST",
    headers,
    body: JSON.stringify({
      ...{ name: "clerk", owner: "tests", memory_scope: "support" },
      tier_policy: { tiers: [3], models: { allow: ["*"], deny: ["up/*"] } },
    }),
  });
  expect(made.status).toBe(201);
  const issued = await stage.gateway.call("POST", "/v1/tokens", {
    token: other,
    body: { name: "their clerk", agent: "clerk" },
  });
  const theirs = (await list("", issued.body.secret)).body.data.filter(allowed).map(idOf);
  expect(theirs).toEqual(["other/claude", "tier:3"]);
  const ours = (await list("", stage.clerk)).body.data.filter(allowed).map(idOf);
  expect(ours).toEqual(CLERKS);
  for (const id of ours) expect((await openai(stage.clerk).models.retrieve(id)).id).toBe(id);
});

test("OpenAI's client lists and retrieves every name", async () => {
  expect(await ids(openai().models.list())).toEqual(ALL);
  for (const id of ALL) {
    expect(await openai().models.retrieve(id)).toMatchObject({ id, object: "model" });
  }
  const onlyReads = await stage.gateway.token({ scopes: ["agents:read"] });
  expect(await ids(openai(onlyReads).models.list())).toEqual(ALL);
});

test("Anthropic's client lists, pages in both directions and retrieves, with a bearer token and with x-api-key", async () => {
  expect(await ids(anthropic().models.list())).toEqual(ALL);
  expect(await ids(anthropic().models.list({ limit: 1 }))).toEqual(ALL);
  expect(await ids(anthropic().models.list({ limit: 3, after_id: "tier:1" }))).toEqual(ALL.slice(4));
  expect(await ids(anthropic().models.list({ limit: 2, before_id: "tier:1" }))).toEqual([
    ...["gpt-5", "other/claude", "best"],
  ]);
  expect(await ids(anthropic().beta.models.list({ limit: 1000 }))).toEqual(ALL);
  for (const id of ALL) {
    expect(await anthropic().models.retrieve(id)).toMatchObject({ id, type: "model" });
    expect(await anthropic().beta.models.retrieve(id)).toMatchObject({ id });
  }
  const answer = await fetch(`${stage.gateway.url}/v1/models?limit=1`, {
    headers: { "x-api-key": caller, "anthropic-version": "2023-06-01" },
  });
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ has_more: true, first_id: "best", last_id: "best" });
});

test("a cursor continues a list with nothing missing or repeated", async () => {
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const { body } = await list(`?limit=4${cursor === null ? "" : `&cursor=${cursor}`}`);
    expect(body.has_more).toBe(body.next_cursor !== null);
    seen.push(...body.data.map(idOf));
    cursor = body.next_cursor;
  } while (cursor !== null);
  expect(seen).toEqual(ALL);
  const { body } = await list("?before_id=a");
  expect(body).toMatchObject({ data: [], has_more: false, first_id: null, last_id: null });
});

test("a name that is not listed but can be called is retrieved, with its target", async () => {
  expect((await list("/gpt-4o")).body).toMatchObject({ id: "gpt-4o", alias_of: "up/gpt-4o", provider: "up" });
  expect((await list("/small")).body).toMatchObject({ id: "small", alias_of: "tier:1" });
  expect((await list("/priced")).body).toMatchObject({ id: "priced", alias_of: "up/priced" });
  expect((await list("/up%2Ffree%2Fone")).body).toMatchObject({ id: "up/free/one", alias_of: null });
  expect((await list("/up/free/one")).body).toMatchObject({ id: "up/free/one", tiers: [] });
});

test("reading a model is recorded in the ledger", async () => {
  const { headers } = await list("/up/first", stage.clerk);
  const { body } = await stage.gateway.call("GET", `/v1/ledger/${headers.get("gatehouse-ledger")}`);
  expect(body).toMatchObject({ action: "model.read", agent: "clerk", outcome: "succeeded" });
});
