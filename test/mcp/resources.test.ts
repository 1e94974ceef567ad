/** Documents as resources: only those inside the boundary, and only for callers that may read the vault. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { write } from "../support/vault.ts";
import { ledger } from "../tasks/support.ts";
import { type Client, connect } from "./support.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }\n" });
});
afterAll(() => gateway.stop());

/** Reads every resource, page by page. */
async function all(client: Client): Promise<string[]> {
  const uris: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.ask("resources/list", cursor === undefined ? {} : { cursor });
    uris.push(...page.resources.map(({ uri }: { uri: string }) => uri));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return uris;
}

describe("without vault:read", () => {
  test("nothing is listed or read, and the refusals are in the ledger", async () => {
    const { id } = await write(gateway, { text: "A secret." });
    const token = await gateway.token({ scopes: ["tasks:write", "vault:write", "tools:*"] });
    const client = await connect(gateway, { token });
    for (const [method, params] of [
      ["resources/list", {}],
      ["resources/read", { uri: `vault://${id}` }],
    ] as const) {
      const refusal = await client.refusal(method, params);
      expect(refusal).toMatchObject({ code: -32_003, data: { code: "scope_missing" } });
      expect(refusal.message).toContain("vault:read");
    }
    const denied = (await ledger(gateway)).filter(({ code }) => code === "scope_missing");
    expect(denied).toMatchObject([
      { action: "vault.list", outcome: "denied", channel: "mcp" },
      { action: "vault.read", outcome: "denied", channel: "mcp" },
    ]);
  });
});

describe("unknown resources and those outside are refused with the same message", () => {
  test("for an agent's token", async () => {
    await gateway.agent("bounded", { memory_scope: "bounded/own" });
    const client = await connect(gateway, { token: await gateway.token({ agent: "bounded" }) });
    const outside = await write(gateway, { text: "A secret.", scope: "bounded/ownx" });
    const above = await write(gateway, { text: "A secret.", scope: "bounded" });
    const never = outside.id.replace(/.{6}$/, "000000");
    const said = new Set<string>();
    for (const id of [outside.id, above.id, never]) {
      const { message, code, data } = await client.refusal("resources/read", { uri: `vault://${id}` });
      expect([code, data.code]).toEqual([-32_002, "not_found"]);
      said.add(message.replaceAll(id, "ID"));
    }
    expect(said.size).toBe(1);
  });

  test.each([
    ["", -32_002],
    ["vault://", -32_002],
    ["vault://doc_1", -32_002],
    ["vault://../../etc/passwd", -32_002],
    ["file:///etc/passwd", -32_002],
    ["https://example.org", -32_002],
    [7, -32_602],
    [undefined, -32_602],
  ])("%p", async (uri, code) => {
    const client = await connect(gateway);
    expect((await client.refusal("resources/read", { uri })).code).toBe(code);
  });

  test("a document of another workspace", async () => {
    const { id } = await write(gateway, { text: "Theirs." });
    const other = await connect(gateway, { token: await gateway.workspace("others") });
    expect((await other.refusal("resources/read", { uri: `vault://${id}` })).data.code).toBe("not_found");
    expect(await all(other)).toEqual([]);
  });
});

test("a resource shows its document, with the vault's text", async () => {
  const text = "# Returns\n\nWithin fourteen days.";
  const { id } = await write(gateway, {
    title: "Returns",
    scope: "shop/returns",
    source_uri: "https://example.org/returns",
    text,
    content_type: "text/markdown",
  });
  const client = await connect(gateway);
  const { resources } = await client.ask("resources/list");
  expect(resources[0]).toEqual({
    uri: `vault://${id}`,
    name: id,
    title: "Returns",
    description: "shop/returns, from https://example.org/returns",
    mimeType: "text/markdown",
  });
  const answer = await client.ask("resources/read", { uri: `vault://${id}` });
  expect(answer.contents).toMatchObject([{ uri: `vault://${id}`, mimeType: "text/markdown" }]);
  expect(answer.contents[0].text).toContain("Within fourteen days.");
  const entry = await gateway.call("GET", `/v1/ledger/${answer._meta["gatehouse/ledger"]}`);
  expect(entry.body).toMatchObject({ action: "vault.read", channel: "mcp", detail: { document: id } });
  const templates = await client.ask("resources/templates/list");
  expect(templates.resourceTemplates[0].uriTemplate).toBe("vault://{document_id}");
});

test("a changed memory scope applies at the next call", async () => {
  await gateway.agent("moved", { memory_scope: "moved/old" });
  const client = await connect(gateway, { token: await gateway.token({ agent: "moved" }) });
  const before = await write(gateway, { text: "Old.", scope: "moved/old" });
  const after = await write(gateway, { text: "New.", scope: "moved/new" });
  expect(await all(client)).toEqual([`vault://${before.id}`]);
  await gateway.call("PATCH", "/v1/agents/moved", { body: { memory_scope: "moved/new" } });
  expect(await all(client)).toEqual([`vault://${after.id}`]);
  expect((await client.refusal("resources/read", { uri: `vault://${before.id}` })).data.code).toBe(
    "not_found",
  );
});

test("documents beyond a page are listed in pages, each once, newest first", async () => {
  const written: string[] = [];
  for (let made = 0; made < 205; made++) {
    written.push((await write(gateway, { text: `Page ${made}.`, scope: "pages" })).id);
  }
  await gateway.agent("reader", { memory_scope: "pages" });
  const client = await connect(gateway, { token: await gateway.token({ agent: "reader" }) });
  expect(await all(client)).toEqual(written.reverse().map((id) => `vault://${id}`));
  for (const cursor of ["x", 7, Buffer.from("doc_1").toString("base64url")]) {
    expect((await client.refusal("resources/list", { cursor })).code).toBe(-32_602);
  }
}, 20_000);

test("for any boundary, exactly the documents inside are listed and read", async () => {
  const root = "any";
  const SCOPES = ["a", "a/b", "a/b/c", "ab", "a/bc", "b", "b/a", "c.d", "c", "c-d"].map(
    (scope) => `${root}/${scope}`,
  );
  const documents = new Map<string, string>();
  for (const scope of [...SCOPES, root]) {
    documents.set((await write(gateway, { text: `In ${scope}.`, scope })).id, scope);
  }
  await gateway.agent("any", { memory_scope: "none" });
  const client = await connect(gateway, { token: await gateway.token({ agent: "any" }) });
  const boundaries = fc.uniqueArray(fc.constantFrom(...SCOPES, root, "none"), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(boundaries, async (memory) => {
      await gateway.call("PATCH", "/v1/agents/any", { body: { memory_scope: memory } });
      const inside = [...documents].filter(([, scope]) =>
        memory.some((each) => scope === each || scope.startsWith(`${each}/`)),
      );
      expect(new Set(await all(client))).toEqual(new Set(inside.map(([id]) => `vault://${id}`)));
      for (const [id, scope] of documents) {
        const isInside = inside.some(([each]) => each === id);
        const { last } = await client.post({
          jsonrpc: "2.0",
          id: 1,
          method: "resources/read",
          params: { uri: `vault://${id}` },
        });
        expect(last.result?.contents[0].text ?? last.error.data.code).toBe(
          isInside ? `In ${scope}.` : "not_found",
        );
      }
    }),
    { numRuns: 25 },
  );
}, 30_000);
