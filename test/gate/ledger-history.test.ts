/** At startup, the history of ended tokens does not depend on rows that somebody can change, and is cheap to read. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { LedgerHistory } from "../../src/gate/ledger-history.ts";
import { LedgerChanged } from "../../src/ledger/ledger-changed.ts";
import type { Db } from "../../src/store/db.ts";
import { type LedgerBench, openLedger } from "../ledger/support.ts";

let bench: LedgerBench;
beforeEach(async () => {
  bench = await openLedger();
});
afterEach(() => bench.close());

const KEY = "ledger_history:1";

/** Appends unrelated entries. */
async function append(count: number): Promise<void> {
  await bench.db.tx(1, async (tx) => {
    for (let n = 0; n < count; n++) {
      await bench.ledger.append(tx, 1, {
        ...{ phase: "single", action: "agent.list", outcome: "succeeded", channel: "rest", actor: "system" },
      });
    }
  });
}

async function end(action: "token.revoke" | "token.rotate", token: string, rotation?: number): Promise<void> {
  await bench.ledger.record(1, {
    ...{ phase: "single", action, outcome: "succeeded", channel: "rest", actor: "token:tok_admin" },
    detail: { token, rotation },
  });
}

/** Reads the history as the next start would, and counts the ledger entries read. */
async function start(acceptChanged = false): Promise<{ history: LedgerHistory; entries: number }> {
  let entries = 0;
  const db: Db = Object.create(bench.db, {
    all: {
      async value(sql: string, params: []) {
        const rows = await bench.db.all(sql, params);
        if (sql.includes(" FROM ledger ")) entries += rows.length;
        return rows;
      },
    },
  });
  const history = new LedgerHistory({ db, heads: bench.heads, log: silentLog, acceptChanged }, 1);
  await history.read();
  return { history, entries };
}

const noteOf = () =>
  bench.db.get<{ value: string; seal: Uint8Array }>("SELECT value, seal FROM meta WHERE key = $1", [KEY]);

describe("a start", () => {
  test("knows every revocation and rotation, and reads only what came after the stored history", async () => {
    await end("token.revoke", "tok_a");
    await end("token.rotate", "tok_b", 1);
    await append(5_000);
    const first = await start();
    expect(first.entries).toBeGreaterThanOrEqual(5_000);
    await end("token.rotate", "tok_b", 2);
    const { history, entries } = await start();
    expect(entries).toBeLessThanOrEqual(3 * 256);
    expect(history.isOutdated({ id: "tok_a", rotations: 0 })).toBe(true);
    expect(history.isOutdated({ id: "tok_b", rotations: 1 })).toBe(true);
    expect(history.isOutdated({ id: "tok_b", rotations: 2 })).toBe(false);
    expect(history.isOutdated({ id: "tok_c", rotations: 0 })).toBe(false);
  });

  test("has little to read after a busy server was killed", async () => {
    const { history } = await start();
    for (let n = 0; n < 3; n++) {
      await end("token.revoke", `tok_${n}`);
      await append(4_096);
      await history.catchUp();
      await history.keep();
    }
    const again = await start();
    expect(again.entries).toBeLessThanOrEqual(3 * 256);
    for (let n = 0; n < 3; n++) expect(again.history.isOutdated({ id: `tok_${n}`, rotations: 0 })).toBe(true);
  });

  test.each<[string, (before: { value: string; seal: Uint8Array }) => Promise<unknown>]>([
    ["deleted", () => bench.db.run("DELETE FROM meta WHERE key = $1", [KEY])],
    [
      "changed",
      () => bench.db.run(`UPDATE meta SET value = replace(value, 'tok_b', 'tok_x') WHERE key = $1`, [KEY]),
    ],
    [
      "an earlier version",
      ({ value, seal }) =>
        bench.db.run("UPDATE meta SET value = $2, seal = $3 WHERE key = $1", [KEY, value, seal]),
    ],
    [
      "another workspace's",
      () => bench.db.run("UPDATE meta SET key = $2 WHERE key = $1", ["ledger_history:2", KEY]),
    ],
  ])("is not misled by a stored history that is %s", async (_, change) => {
    await end("token.revoke", "tok_a");
    await append(5_000);
    await start();
    const before = await noteOf();
    if (!before) throw new Error("no history is stored");
    await end("token.revoke", "tok_b");
    await append(5_000);
    await start();
    expect((await noteOf())?.value).toContain("tok_b");
    await change(before);
    const { history } = await start();
    for (const id of ["tok_a", "tok_b"]) expect(history.isOutdated({ id, rotations: 0 })).toBe(true);
  });

  test("is not misled by the stored history of a diverged ledger", async () => {
    const other = await openLedger();
    try {
      // The same key seals both, as happens after a backup is restored.
      const mine = bench;
      bench = other;
      await append(9_000);
      await start();
      const note = await noteOf();
      bench = mine;
      await end("token.revoke", "tok_a");
      await append(9_500);
      await bench.db.run("INSERT INTO meta (key, value, seal) VALUES ($1, $2, $3)", [
        KEY,
        note?.value ?? "",
        note?.seal ?? null,
      ]);
      const { history } = await start();
      expect(history.isOutdated({ id: "tok_a", rotations: 0 })).toBe(true);
    } finally {
      await other.close();
    }
  });

  test("is refused if an entry was changed, unless the operator accepts that", async () => {
    await end("token.revoke", "tok_a");
    await append(600);
    const file = bench.own;
    file.exec("DROP TRIGGER ledger_no_update");
    file.exec(
      "UPDATE ledger SET bytes = replace(bytes, 'agent.list', 'agent.lists') WHERE workspace_id = 1 AND seq = 300",
    );
    await expect(start()).rejects.toBeInstanceOf(LedgerChanged);
    const { history } = await start(true);
    expect(history.isOutdated({ id: "tok_a", rotations: 0 })).toBe(true);
    await start();
  });
});
