import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Answered, type CallOptions, startGateway, type TestGateway } from "../support/gateway.ts";
import { AGENT_SCOPES, write } from "../support/vault.ts";

let gateway: TestGateway;
let token: string;
let document: string;
let outside: string;
/** Words in texts, titles, queries, sources, metadata and filters. None of them may appear in an entry. */
const PRIVATE = [
  "quokkatext",
  "quokkatitle",
  "quokkaquery",
  "quokkauri",
  "quokkameta",
  "quokkafilter",
] as const;
const [TEXT, TITLE, QUERY, URI, META, FILTER] = PRIVATE;
const UNKNOWN = "doc_01arz3ndektsv4rrffq69g5fav";
const FREE = "doc_01arz3ndektsv4rrffq69g5faw";

const body = {
  title: `A ${TITLE}`,
  text: `This is the ${TEXT}.`,
  scope: "support",
  source_uri: `https://example.test/${URI}`,
  metadata: { key: META },
};

beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("agent", { memory_scope: "support" });
  token = await gateway.token({ agent: "agent", scopes: AGENT_SCOPES });
  document = (await write(gateway, body)).id;
  outside = (await write(gateway, { ...body, scope: "legal" })).id;
});
afterAll(() => gateway.stop());

async function entryOf(answer: Answered) {
  const seq = Number(answer.headers.get("gatehouse-ledger"));
  expect(seq).toBeGreaterThan(0);
  return (await gateway.call("GET", `/v1/ledger/${seq}`)).body;
}

interface Row {
  readonly call: () => readonly [method: string, path: string, options?: CallOptions];
  readonly status: number;
  readonly shown: () => object;
}
const ask = (more: object = {}) => ({ query: `the ${QUERY}`, filter: { key: FILTER }, ...more });
const ROWS: readonly (readonly [name: string, row: Row])[] = [
  [
    "a search by an agent",
    {
      call: () => ["POST", "/v1/vault/search", { token, body: { query: `${QUERY} ${TEXT}` } }],
      status: 200,
      shown: () => ({
        action: "vault.search",
        outcome: "succeeded",
        agent: "agent",
        detail: { results: 1, mode: "hybrid" },
      }),
    },
  ],
  [
    "a search as an agent would",
    {
      call: () => ["POST", "/v1/vault/search", { body: ask({ agent: "agent", mode: "keyword" }) }],
      status: 200,
      shown: () => ({
        action: "vault.search",
        outcome: "succeeded",
        agent: "agent",
        detail: { results: 0, mode: "keyword" },
      }),
    },
  ],
  [
    "a search with no agent",
    {
      call: () => ["POST", "/v1/vault/search", { body: ask({ agent: "nobody" }) }],
      status: 404,
      shown: () => ({ action: "vault.search", outcome: "denied", code: "agent_not_found" }),
    },
  ],
  [
    "a search as another agent",
    {
      call: () => ["POST", "/v1/vault/search", { token, body: ask({ agent: "other" }) }],
      status: 403,
      shown: () => ({ action: "vault.search", outcome: "denied", code: "agent_forbidden" }),
    },
  ],
  [
    "an invalid search",
    {
      call: () => ["POST", "/v1/vault/search", { token, body: ask({ scopes: [`/${QUERY}`] }) }],
      status: 422,
      shown: () => ({ action: "vault.search", outcome: "denied", code: "validation_failed", agent: "agent" }),
    },
  ],
  [
    "a new document",
    {
      call: () => ["POST", "/v1/vault/documents", { token, body }],
      status: 201,
      shown: () => ({
        action: "vault.write",
        outcome: "succeeded",
        agent: "agent",
        detail: {
          document: expect.stringMatching(/^doc_/),
          scope: "support",
          chunks: 1,
          characters: body.text.length,
        },
      }),
    },
  ],
  [
    "a new document with an id chosen by the caller",
    {
      call: () => ["POST", "/v1/vault/documents", { body: { ...body, id: UNKNOWN } }],
      status: 201,
      shown: () => ({
        action: "vault.write",
        outcome: "succeeded",
        detail: { document: UNKNOWN, scope: "support", chunks: 1, characters: body.text.length },
      }),
    },
  ],
  [
    "a replaced document",
    {
      call: () => ["POST", "/v1/vault/documents", { body: { ...body, id: document } }],
      status: 200,
      shown: () => ({
        action: "vault.write",
        outcome: "succeeded",
        detail: { document, scope: "support", chunks: 1, characters: body.text.length },
      }),
    },
  ],
  [
    "a document for another scope",
    {
      call: () => ["POST", "/v1/vault/documents", { token, body: { ...body, scope: "legal" } }],
      status: 403,
      shown: () => ({ action: "vault.write", outcome: "denied", code: "scope_forbidden", agent: "agent" }),
    },
  ],
  [
    "a replacement of a document that lies outside",
    {
      call: () => ["POST", "/v1/vault/documents", { token, body: { ...body, id: outside } }],
      status: 403,
      shown: () => ({ action: "vault.write", outcome: "denied", code: "scope_forbidden", agent: "agent" }),
    },
  ],
  [
    "a document with an unused id",
    {
      call: () => ["POST", "/v1/vault/documents", { token, body: { ...body, id: FREE } }],
      status: 403,
      shown: () => ({ action: "vault.write", outcome: "denied", code: "scope_forbidden", agent: "agent" }),
    },
  ],
  [
    "a document that cannot be read",
    {
      call: () => [
        "POST",
        "/v1/vault/documents",
        { token, body: { ...body, content_type: "application/json" } },
      ],
      status: 422,
      shown: () => ({ action: "vault.write", outcome: "denied", code: "validation_failed", agent: "agent" }),
    },
  ],
  [
    "a list",
    {
      call: () => ["GET", `/v1/vault/documents?source_uri=${URI}`, { token }],
      status: 200,
      shown: () => ({ action: "vault.list", outcome: "succeeded", agent: "agent" }),
    },
  ],
  [
    "a document read",
    {
      call: () => ["GET", `/v1/vault/documents/${document}`, { token }],
      status: 200,
      shown: () => ({ action: "vault.read", outcome: "succeeded", agent: "agent", detail: { document } }),
    },
  ],
  [
    "a read of a document outside",
    {
      call: () => ["GET", `/v1/vault/documents/${outside}`, { token }],
      status: 404,
      shown: () => ({
        action: "vault.read",
        outcome: "denied",
        code: "not_found",
        agent: "agent",
        detail: { document: outside },
      }),
    },
  ],
  [
    "a read of a missing document",
    {
      call: () => ["GET", `/v1/vault/documents/${TEXT}`, { token }],
      status: 404,
      shown: () => ({ action: "vault.read", outcome: "denied", code: "not_found", agent: "agent" }),
    },
  ],
  [
    "a deletion of a document outside",
    {
      call: () => ["DELETE", `/v1/vault/documents/${outside}`, { token }],
      status: 404,
      shown: () => ({ action: "vault.delete", outcome: "denied", code: "not_found", agent: "agent" }),
    },
  ],
  [
    "a document deleted",
    {
      call: () => ["DELETE", `/v1/vault/documents/${document}`, { token }],
      status: 204,
      shown: () => ({ action: "vault.delete", outcome: "succeeded", agent: "agent", detail: { document } }),
    },
  ],
];

describe("each call is one entry, which its answer names", () => {
  test.each(ROWS)("%s", async (_, { call, status, shown }) => {
    const newest = async () =>
      (await gateway.call("GET", "/v1/ledger?order=desc&limit=1")).body.data[0].seq as number;
    const before = await newest();
    const answer = await gateway.call(...call());
    expect(answer.status).toBe(status);
    // Two entries: the first of the two ledger reads around the call, and the call.
    expect((await newest()) - before).toBe(2);
    const entry = await entryOf(answer);
    expect(entry).toMatchObject({ phase: "single", channel: "rest", ...shown() });
    expect(entry.request_id).toBe(answer.headers.get("gatehouse-request-id"));
    expect(entry.ref ?? null).toBeNull();
  });
});

describe("a token needs its scope", () => {
  const rows = [
    ["vault:read", "POST", "/v1/vault/search", { query: "a" }, "vault.search"],
    ["vault:read", "GET", "/v1/vault/documents", undefined, "vault.list"],
    ["vault:read", "GET", `/v1/vault/documents/${UNKNOWN}`, undefined, "vault.read"],
    ["vault:write", "POST", "/v1/vault/documents", body, "vault.write"],
    ["vault:write", "DELETE", `/v1/vault/documents/${UNKNOWN}`, undefined, "vault.delete"],
  ] as const;
  test.each(rows)("%s for %s %s", async (scope, method, path, given, action) => {
    const other = scope === "vault:read" ? "vault:write" : "vault:read";
    const without = await gateway.token({ scopes: [other, "tools:*", "agents:read", "settings:write"] });
    const answer = await gateway.call(method, path, { token: without, ...(given ? { body: given } : {}) });
    expect([answer.status, answer.body.code]).toEqual([403, "scope_missing"]);
    expect(answer.body.detail).toContain(scope);
    expect(await entryOf(answer)).toMatchObject({ action, outcome: "denied", code: "scope_missing" });
  });

  test("an agent's token reads, but does not write, by default", async () => {
    const plain = await gateway.token({ agent: "agent" });
    expect((await gateway.call("GET", "/v1/vault/documents", { token: plain })).status).toBe(200);
    const written = await gateway.call("POST", "/v1/vault/documents", { token: plain, body });
    expect([written.status, written.body.code]).toEqual([403, "scope_missing"]);
  });
});

test("no text, title, query, source or metadata is in any entry, not even for a task's search", async () => {
  const asking = { agent: "agent", prompt: `Where is the ${TEXT} of ${QUERY}?`, tools: ["vault.search"] };
  const made = await gateway.call("POST", "/v1/vault/documents", { body });
  expect(made.status).toBe(201);
  const response = await fetch(`${gateway.url}/v1/tasks?stream=true`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.admin}`, "content-type": "application/json" },
    body: JSON.stringify(asking),
  });
  expect(await response.text()).toContain(TEXT);
  const pages: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: Answered = await gateway.call("GET", `/v1/ledger?limit=200${cursor && `&cursor=${cursor}`}`);
    pages.push(JSON.stringify(page.body.data));
    cursor = page.body.next_cursor;
  }
  const ledger = pages.join("");
  expect(ledger).toContain('"vault.search"');
  for (const word of PRIVATE) expect(ledger).not.toContain(word);
});
