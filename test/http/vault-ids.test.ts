/** Ids of documents are unique in a workspace, but must not reveal anything outside a caller's boundary. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import { type Answered, startGateway, type TestGateway } from "../support/gateway.ts";
import { AGENT_SCOPES, remove, write } from "../support/vault.ts";

const newId = createIds(systemClock, systemRandom);

let gateway: TestGateway;
let narrowed: string;
let whole: string;
/** The id of a document that the narrowed agent does not see. */
let elsewhere: string;
let deleted: string;
let foreign: string;

beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("narrowed", { memory_scope: ["support", "sales"] });
  await gateway.agent("whole", { memory_scope: "/" });
  narrowed = await gateway.token({ agent: "narrowed", scopes: [...AGENT_SCOPES, "tools:vault.*"] });
  whole = await gateway.token({ agent: "whole", scopes: AGENT_SCOPES });
  elsewhere = (await write(gateway, { scope: "legal", title: "Theirs", text: "A secret." })).id;
  deleted = (await write(gateway, { scope: "support", text: "Gone." })).id;
  await remove(gateway, deleted);
  const other = await gateway.workspace("other");
  foreign = (await write(gateway, { scope: "support", text: "Of another workspace." }, other)).id;
});
afterAll(() => gateway.stop());

const post = (token: string | undefined, body: object): Promise<Answered> =>
  gateway.call("POST", "/v1/vault/documents", {
    ...(token === undefined ? {} : { token }),
    body: { title: "Mine", text: "A new text.", scope: "support", ...body },
  });

/** Everything in an answer that could distinguish one id from another. */
function told({ status, body }: Answered, id: string): unknown {
  const { request_id, duration_ms, ...rest } = body;
  return JSON.parse(JSON.stringify([status, rest]).replaceAll(id, "ID"));
}

async function entryOf(answer: Answered, id: string): Promise<unknown> {
  const { body } = await gateway.call("GET", `/v1/ledger/${answer.headers.get("gatehouse-ledger")}`);
  const { action, outcome, code, agent, detail } = body;
  return JSON.parse(JSON.stringify({ action, outcome, code, agent, detail }).replaceAll(id, "ID"));
}

describe("a caller with a boundary gets the same answer for every id that it cannot see", () => {
  const cases: readonly (readonly [string, () => string])[] = [
    ["of a document outside", () => elsewhere],
    ["of a document that was deleted", () => deleted],
    ["of another workspace's document", () => foreign],
  ];

  test.each(cases)("%s, as for an unused one, when it writes", async (_, id) => {
    const free = newId("doc");
    const [taken, unknown] = [await post(narrowed, { id: id() }), await post(narrowed, { id: free })];
    expect(taken.status).toBe(403);
    expect(told(taken, id())).toEqual(told(unknown, free));
    expect(await entryOf(taken, id())).toEqual(await entryOf(unknown, free));
    // An unreadable document is not even looked at; otherwise the order of the refusals would reveal the id.
    const broken = { content_type: "application/json" };
    expect(told(await post(narrowed, { id: id(), ...broken }), id())).toEqual(told(unknown, free));
  });

  test.each(cases)("%s, as for an unused one, when it reads, deletes or calls a tool", async (_, id) => {
    const free = newId("doc");
    for (const method of ["GET", "DELETE"]) {
      const ask = (each: string) => gateway.call(method, `/v1/vault/documents/${each}`, { token: narrowed });
      const [taken, unknown] = [await ask(id()), await ask(free)];
      expect(taken.status).toBe(404);
      expect(told(taken, id())).toEqual(told(unknown, free));
      expect(await entryOf(taken, id())).toEqual(await entryOf(unknown, free));
    }
    for (const [tool, args] of [
      ["vault.read", (each: string) => ({ document_id: each })],
      ["vault.write", (each: string) => ({ id: each, title: "Mine", text: "A new text." })],
    ] as const) {
      const ask = (each: string) =>
        gateway.call("POST", `/v1/tools/${tool}/call`, { token: narrowed, body: { arguments: args(each) } });
      const [taken, unknown] = [await ask(id()), await ask(free)];
      expect(taken.body.status).toBe("failed");
      expect(told(taken, id())).toEqual(told(unknown, free));
    }
  });

  test("and documents outside are unchanged", async () => {
    const { body } = await gateway.call("GET", `/v1/vault/documents/${elsewhere}`);
    expect([body.title, body.text, body.scope]).toEqual(["Theirs", "A secret.", "legal"]);
  });
});

test("a caller with a boundary replaces and moves visible documents, with their assigned ids", async () => {
  const made = await post(narrowed, {});
  expect(made.status).toBe(201);
  const { id } = made.body;
  expect((await post(narrowed, { id, text: "Again." })).status).toBe(200);
  expect((await post(narrowed, { id, scope: "sales" })).status).toBe(200);
  expect((await post(narrowed, { id, scope: "legal" })).body.code).toBe("scope_forbidden");
});

test.each([
  ["the admin", () => undefined],
  ["an agent whose memory covers everything", () => whole],
])("%s may choose the id of a new document", async (_, token) => {
  const id = newId("doc");
  const made = await post(token(), { id });
  expect([made.status, made.body.id]).toEqual([201, id]);
  expect((await post(token(), { id })).status).toBe(200);
});
