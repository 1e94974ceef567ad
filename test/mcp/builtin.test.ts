/** The builtin tools, called outside of tasks, with the rights that the token's agent has at that moment. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { search, write } from "../support/vault.ts";
import { ledger, unsettled } from "../tasks/support.ts";
import { type Client, connect } from "./support.ts";

let gateway: TestGateway;
let own: Client;
let all: Client;
beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("clerk", { memory_scope: ["clerk/own", "clerk/more"] });
  own = await connect(gateway, { token: await gateway.token({ agent: "clerk" }) });
  all = await connect(gateway);
});
afterAll(async () => {
  expect(unsettled(await ledger(gateway))).toEqual([]);
  await gateway.stop();
});

const ids = (answer: { structuredContent: { results: { document_id: string }[] } }) =>
  answer.structuredContent.results.map(({ document_id }) => document_id).sort();

describe("vault.search", () => {
  test("shows nothing outside the agent's memory, whatever the requested scopes", async () => {
    const outside = await write(gateway, { text: "The heron is outside.", scope: "clerk/ownx" });
    const inside = await write(gateway, { text: "The heron is inside.", scope: "clerk/own/deep" });
    for (const scopes of [undefined, ["/"], ["clerk"], ["clerk/own"]]) {
      expect(ids(await own.call("vault__search", { query: "heron", ...(scopes ? { scopes } : {}) }))).toEqual(
        [inside.id],
      );
    }
    expect(ids(await own.call("vault__search", { query: "heron", scopes: ["clerk/ownx"] }))).toEqual([]);
    expect(ids(await all.call("vault__search", { query: "heron" }))).toEqual([outside.id, inside.id].sort());
  });

  test("returns the same as text and as structure", async () => {
    const answer = await all.call("vault__search", { query: "heron" });
    expect(JSON.parse(answer.content[0].text)).toEqual(answer.structuredContent);
  });
});

describe("vault.read", () => {
  test("fails with the same message for documents outside and for unknown ones", async () => {
    const { id } = await write(gateway, { text: "A secret.", scope: "clerk/ownx" });
    const never = id.replace(/.{6}$/, "000000");
    const said = new Set<string>();
    for (const document_id of [id, never]) {
      const answer = await own.call("vault__read", { document_id });
      expect(answer.isError).toBe(true);
      said.add(answer.content[0].text.replaceAll(document_id, "ID"));
    }
    expect(said.size).toBe(1);
    expect((await all.call("vault__read", { document_id: id })).structuredContent.text).toBe("A secret.");
  });
});

describe("vault.write", () => {
  test.each(["clerk/ownx", "clerk", "/", "legal"])("is refused in %s, and writes nothing", async (scope) => {
    const answer = await own.call("vault__write", { title: "T", text: "A crake hides.", scope });
    expect(answer.isError).toBe(true);
    expect((await search(gateway, { query: "crake", mode: "keyword" })).results).toEqual([]);
  });

  test("writes inside, in the token's name, and the document can be found", async () => {
    const { structuredContent } = await own.call("vault__write", { title: "T", text: "The bittern booms." });
    expect(structuredContent.scope).toBe("clerk/own");
    expect(ids(await own.call("vault__search", { query: "bittern" }))).toEqual([structuredContent.id]);
    const calls = (await ledger(gateway)).filter(({ tool }) => tool === "vault.write");
    expect(calls.map(({ phase, outcome }) => `${phase} ${outcome}`).slice(-2)).toEqual([
      "intent allowed",
      "outcome succeeded",
    ]);
    expect(JSON.stringify(calls)).not.toContain("bittern");
  });

  test("an agent whose memory has moved writes to its present scope", async () => {
    await gateway.call("PATCH", "/v1/agents/clerk", { body: { memory_scope: "clerk/new" } });
    const there = await own.call("vault__write", { title: "T", text: "New." });
    expect(there.structuredContent.scope).toBe("clerk/new");
    const before = await own.call("vault__write", { title: "T", text: "Old.", scope: "clerk/own" });
    expect(before.isError).toBe(true);
    await gateway.call("PATCH", "/v1/agents/clerk", { body: { memory_scope: ["clerk/own", "clerk/more"] } });
  });
});

describe("time.now", () => {
  test("returns the time, or explains what is wrong with a time zone", async () => {
    expect((await own.call("time__now")).structuredContent.now).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/);
    const wrong = await own.call("time__now", { time_zone: "Mars/Olympus" });
    expect([wrong.isError, wrong.content[0].text]).toEqual([true, expect.stringContaining("Mars/Olympus")]);
  });
});

test("other workspaces' documents cannot be reached", async () => {
  await write(gateway, { text: "The egret is ours.", scope: "egret" });
  const other = await connect(gateway, { token: await gateway.workspace("other") });
  expect(ids(await other.call("vault__search", { query: "egret" }))).toEqual([]);
});
