/**
 * Changes that somebody makes in a database's file hide nothing from lists, exports and bundles, and are reported.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { parseVerifierKey } from "../../src/ledger/proof/note.ts";
import { sha256 } from "../../src/ledger/tree-hash.ts";
import { verifyBundle } from "../../src/ledger/verify/bundle/verify.ts";
import { bundleTools } from "../../src/ledger/verify/tools.ts";
import { Unpacked } from "../ledger/verify/bundle/support.ts";
import type { TestGateway } from "../support/gateway.ts";
import { ownConnection } from "../support/own-connection.ts";
import { until } from "../tasks/support.ts";
import { type Ledgered, ledgerOf } from "./ledger-export-support.ts";

const ENTRIES = 700;
/** Four denials in the first block of the index, and one entry of a task. */
const DENIALS = [11, 57, 101, 200];

let ledgered: Ledgered;
let gateway: TestGateway;

beforeEach(async () => {
  ledgered = await ledgerOf(ENTRIES, (index) =>
    DENIALS.includes(index)
      ? { action: "oversight.deny", oversight: { person: "Ada", decision: "deny" } }
      : { action: "test.note", tier: 1 + (index % 3) },
  );
});
afterEach(async () => {
  await gateway.stop();
  ledgered.remove();
});

/**
 * Changes the database without the key while no server runs, and then starts one. It would not start if it had to
 * read the changed entries to know which tokens have ended, so the history of tokens is stored first.
 */
async function startAfter(sql: string): Promise<void> {
  await (await ledgered.start({ acceptRows: () => {} })).stop();
  const database = new Database(join(ledgered.path, "gatehouse.db"));
  const triggers = database
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    .all();
  for (const { name } of triggers) database.exec(`DROP TRIGGER ${name}`);
  database.exec(sql);
  for (const trigger of triggers) database.exec(trigger.sql);
  database.close();
  gateway = await ledgered.start();
}

const seqOfDenial = async () => {
  const database = new Database(join(ledgered.path, "gatehouse.db"), { readonly: true });
  const row = database
    .query<{ seq: number }, []>(
      "SELECT MIN(seq) AS seq FROM ledger WHERE bytes->>'action' = 'oversight.deny'",
    )
    .get();
  database.close();
  return row?.seq ?? 0;
};

async function answered(query: string): Promise<Response> {
  return fetch(`${gateway.url}/v1/ledger?${query}`, {
    headers: { authorization: `Bearer ${gateway.admin}` },
  });
}

const denialsIn = (text: string) => text.split("\n").filter((line) => line.includes("oversight.deny")).length;

async function named(action: string): Promise<number> {
  const { body } = await gateway.call("GET", `/v1/ledger?action=${action}`);
  return body.data.length as number;
}

const counted = async (kind: string) => {
  const { body } = await gateway.call("GET", "/metrics");
  const line = new RegExp(`^gatehouse_store_disturbances_total\\{kind="${kind}"\\} (\\d+)$`, "m");
  return Number(line.exec(body)?.[1] ?? 0);
};

describe.each([
  ["its rows are gone", "DELETE FROM ledger_index WHERE key = 'action:oversight.deny' OR key = 'oversight'"],
  [
    "its bits are cleared",
    "UPDATE ledger_index SET bits = zeroblob(32) WHERE key IN ('action:oversight.deny', 'oversight')",
  ],
  [
    "its rows are moved to other blocks",
    "UPDATE ledger_index SET block = block + 1000 WHERE key IN ('action:oversight.deny', 'oversight')",
  ],
])("an index that hides denials: %s", (_, sql) => {
  test("hides none from the first list after the start, nor from later ones, and is named once", async () => {
    await startAfter(sql);
    for (const order of ["asc", "desc"]) {
      for (let again = 0; again < 2; again++) {
        const { body } = await gateway.call("GET", `/v1/ledger?action=oversight.deny&order=${order}`);
        expect(body.data).toHaveLength(DENIALS.length);
        expect(body.next_cursor).toBeNull();
      }
    }
    await until(async () => (await named("ledger.index_changed")) === 1);
    expect(await counted("index_changed")).toBe(1);
  });

  test("hides none from pages and exports in other formats", async () => {
    await startAfter(sql);
    for (const query of ["format=ndjson", "format=csv", "format=ndjson&limit=10", "format=csv&order=desc"]) {
      const response = await answered(`${query}&action=oversight.deny`);
      expect([query, denialsIn(await response.text())]).toEqual([query, DENIALS.length]);
    }
  });

  test("hides none from pages in other formats, although it was changed after a list had checked it", async () => {
    gateway = await ledgered.start();
    expect((await gateway.call("GET", "/v1/ledger?action=oversight.deny")).body.data).toHaveLength(4);
    ownConnection(ledgered.path).exec(sql);
    for (const query of ["format=ndjson&limit=3", "format=csv&limit=3&order=desc"]) {
      const first = await answered(`${query}&action=oversight.deny`);
      expect(denialsIn(await first.text())).toBe(3);
      const cursor = first.headers.get("gatehouse-next-cursor");
      const second = await answered(`${query}&action=oversight.deny&cursor=${cursor}`);
      expect([query, denialsIn(await second.text())]).toEqual([query, 1]);
      expect(second.headers.get("gatehouse-next-cursor")).toBeNull();
    }
  });

  test.each(["action=oversight.deny", "action=oversight.deny&actor=system", "actor=system"])(
    "hides none from a signed bundle, its decisions and its report (%s)",
    async (filter) => {
      await startAfter(sql);
      const file = await (await answered(`format=article14&${filter}`)).blob();
      const bundle = await Unpacked.of(file);
      const { counts } = JSON.parse(bundle.text("manifest.json"));
      expect(denialsIn(bundle.text("entries.ndjson"))).toBe(DENIALS.length);
      if (filter.startsWith("action")) expect(counts.included).toBe(DENIALS.length);
      expect(
        denialsIn(bundle.text("oversight.csv").replaceAll("deny", "oversight.deny")),
      ).toBeGreaterThanOrEqual(DENIALS.length);
      const key = (await gateway.call("GET", "/v1/ledger/key")).body.vkey as string;
      const result = await verifyBundle(
        file,
        { keys: [parseVerifierKey(sha256, key)], checkpoints: [] },
        bundleTools,
      );
      expect(result).toMatchObject({ verdict: "holds", findings: [] });
    },
  );
});

describe("an entry that was changed so that a filter excludes it", () => {
  const change = (seq: number) =>
    `UPDATE ledger SET bytes = replace(bytes, 'oversight.deny', 'oversight.nope') WHERE seq = ${seq}`;

  test("is in no signed bundle or export: they are cut off, and it is named", async () => {
    const seq = await seqOfDenial();
    await startAfter(change(seq));
    for (const format of ["article14", "ndjson", "csv"]) {
      const whole = answered(`format=${format}&action=oversight.deny`).then((response) => response.text());
      const isWhole = await whole.then(
        () => true,
        () => false,
      );
      expect([format, isWhole]).toEqual([format, false]);
    }
    await until(async () => (await counted("entry_changed")) === 1);
  });

  test("is in no list: the call is refused with 503, and the entry is named in the ledger", async () => {
    const seq = await seqOfDenial();
    await startAfter(change(seq));
    const refused = [
      ["GET", "/v1/ledger?action=oversight.deny"],
      ["GET", "/v1/ledger?action=oversight.deny&format=ndjson&limit=5"],
      ["GET", `/v1/ledger/${seq}`],
      ["DELETE", `/v1/ledger/${seq}/payload`],
    ] as const;
    for (const [method, path] of refused) {
      const { status, body, headers } = await gateway.call(method, path);
      expect([path, status, body.code]).toEqual([path, 503, "ledger_unavailable"]);
      expect(body.detail).toContain("is not the one that was signed. Run `gatehouse ledger verify`");
      // The call itself is recorded, so the ledger can still be appended to.
      expect(headers.get("gatehouse-ledger")).toMatch(/^\d+$/);
    }
    const later = await gateway.call("GET", "/v1/ledger?order=desc&limit=50");
    expect(later.status).toBe(200);
    await until(async () => (await counted("entry_changed")) === 1);
    const { body } = await gateway.call("GET", "/v1/ledger?order=desc&limit=50");
    expect(body.data).toContainEqual(
      expect.objectContaining({
        action: "ledger.entry_changed",
        outcome: "failed",
        detail: expect.objectContaining({ target_seq: seq }),
      }),
    );
  });

  test("nor is an entry with a wrong stored hash returned", async () => {
    const seq = await seqOfDenial();
    await startAfter(`UPDATE ledger SET leaf = zeroblob(32) WHERE seq = ${seq}`);
    for (const path of [`/v1/ledger/${seq}`, "/v1/ledger?action=oversight.deny"]) {
      const { status, body } = await gateway.call("GET", path);
      expect([path, status, body.code]).toEqual([path, 503, "ledger_unavailable"]);
    }
  });

  test.each([
    ["an entry of the period is gone", (seq: number) => `DELETE FROM ledger WHERE seq = ${seq}`],
    [
      "the time of an entry is changed, so that the period begins elsewhere",
      (seq: number) => `UPDATE ledger SET bytes = replace(bytes, '"ts":"20', '"ts":"19') WHERE seq = ${seq}`,
    ],
    [
      "an entry and its hash are changed",
      (seq: number) =>
        `UPDATE ledger SET bytes = replace(bytes, 'oversight.deny', 'oversight.nope'), leaf = randomblob(32) WHERE seq = ${seq}`,
    ],
    [
      "a tile is changed",
      () =>
        "UPDATE ledger_tiles SET hashes = randomblob(8192) WHERE level = 1 AND workspace_id = 1 AND length(hashes) = 8192",
    ],
  ])("%s: no bundle is signed as if all were well", async (name, sql) => {
    const seq = name.includes("the time") ? Math.ceil(ENTRIES / 2) : await seqOfDenial();
    await startAfter(sql(seq));
    const from = new Date(ledgered.clock.now() - 30 * 60_000).toISOString();
    const body = await answered(`format=article14&from=${from}`)
      .then((response) => response.blob())
      .catch(() => null);
    if (body === null) return;
    const result = await verifyBundle(body, { keys: [], checkpoints: [] }, bundleTools);
    const bundle = await Unpacked.of(body);
    // A tile that no proof needs is not part of the bundle's evidence.
    expect([result.verdict, JSON.parse(bundle.text("manifest.json")).counts.total]).toEqual(
      name === "a tile is changed" ? ["holds", expect.any(Number)] : ["tampered", expect.any(Number)],
    );
  });
});

test("proofs from a changed tree are refused with 503, and the change is named", async () => {
  await startAfter("UPDATE ledger SET leaf = leaf");
  const database = ownConnection(ledgered.path);
  const triggers = database
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    .all();
  for (const { name } of triggers) database.exec(`DROP TRIGGER ${name}`);
  database.exec("UPDATE ledger_tiles SET hashes = randomblob(length(hashes)) WHERE workspace_id = 1");
  const refused = await gateway.call("GET", "/v1/ledger/consistency?from=100&to=300");
  expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
  await until(async () => (await counted("entry_changed")) === 1);
});

test("an entry changed to name an agent gives that agent no proof", async () => {
  gateway = await ledgered.start();
  const body = { name: "scout", owner: "Ada", memory_scope: "a" };
  expect((await gateway.call("POST", "/v1/agents", { body })).status).toBe(201);
  const token = await gateway.token({ agent: "scout", scopes: ["ledger:read"] });
  expect((await gateway.call("GET", "/v1/ledger/50/proof", { token })).status).toBe(404);
  const database = ownConnection(ledgered.path);
  for (const { name } of database
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    .all())
    database.exec(`DROP TRIGGER ${name}`);
  database.exec(
    `UPDATE ledger SET bytes = json_set(bytes, '$.agent', 'scout', '$.ts', '2999-01-01T00:00:00.000Z') WHERE seq = 300`,
  );
  const refused = await gateway.call("GET", "/v1/ledger/300/proof", { token });
  expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
});
