/** The ledgers' key is replaced on one node, and the others go on with the new one. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import type { EntryDraft } from "../../src/ledger/entry.ts";
import { rotateKey } from "../../src/ledger/keys/rotation.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { startProxy } from "../support/postgres/proxy.ts";
import { until } from "../support/until.ts";
import { type LedgerNode, type LedgerNodes, openLedgerNodes } from "./ledger-support.ts";

setDefaultTimeout(60_000);

const READ: EntryDraft = {
  ...{ phase: "single", action: "agent.list", outcome: "succeeded", channel: "rest", actor: "token:tok_1" },
};
const ORIGIN = { actor: "token:tok_1", channel: "rest", requestId: "req_1" } as const;

describe.skipIf(missingPostgres !== undefined)("a key that is replaced", () => {
  let bench: LedgerNodes;
  let one: LedgerNode;
  let two: LedgerNode;
  beforeEach(async () => {
    bench = await openLedgerNodes();
    [one, two] = [await bench.open(), await bench.open()];
  });
  afterEach(() => bench.close());

  const keyOf = ({ keys }: LedgerNode) => keys.verifierKeys("w1");
  const append = (node: LedgerNode, workspaceId = 1) => node.ledger.record(workspaceId, READ);

  test("is used by other nodes from their next entry on", async () => {
    await append(two);
    const { current: former } = keyOf(one);
    await rotateKey(one.rotation, ORIGIN);
    await append(two);
    await append(one);
    expect(keyOf(two)).toEqual(keyOf(one));
    expect(keyOf(two).former).toEqual([former]);
    expect((await two.proofs.head(1)).note).toBe((await one.proofs.head(1)).note);
    const third = await bench.open();
    expect(keyOf(third)).toEqual(keyOf(one));
  });

  test("fails no entry that other nodes append meanwhile, and is known to them soon", async () => {
    const appends: Promise<number>[] = [];
    const rotations = (async () => {
      for (let count = 0; count < 3; count++) await rotateKey(one.rotation, ORIGIN);
    })();
    for (let count = 0; count < 100; count++) {
      appends.push(append(two, 1 + (count % 2)), append(one, 1 + (count % 2)));
      if (count % 10 === 9) await Bun.sleep(5);
    }
    await rotations;
    await Promise.all(appends);
    await until(() => keyOf(two).current === keyOf(one).current);
    expect(keyOf(one).former).toHaveLength(3);
    const third = await bench.open();
    expect(await append(third)).toBeGreaterThan(100);
  });

  test("signs a node's own entries before that node learns that its rotation has committed", async () => {
    const proxy = await startProxy(bench.database.url);
    try {
      const node = await bench.open({}, systemClock, proxy.url);
      await append(node);
      const committed = proxy.delayCommitAfter("INSERT INTO ledger_keys");
      const rotated = rotateKey(node.rotation, ORIGIN);
      await committed;
      const seq = await append(node);
      proxy.release();
      await rotated;
      expect(await append(two)).toBe(seq + 1);
      expect(await append(node)).toBe(seq + 2);
      expect(keyOf(two)).toEqual(keyOf(node));
      expect(keyOf(node).former).toHaveLength(1);
      await node.close();
    } finally {
      await proxy.close();
    }
  });

  test("is replaced by several nodes at once, one after the other", async () => {
    await Promise.all([rotateKey(one.rotation, ORIGIN), rotateKey(two.rotation, ORIGIN)]);
    await append(one);
    await append(two);
    expect(keyOf(two)).toEqual(keyOf(one));
    expect(keyOf(one).former).toHaveLength(2);
  });

  test("is not replaced while this node does not know a new workspace", async () => {
    await bench.database.query("INSERT INTO workspaces (id, name, created_at) VALUES (3, 'w3', 0)");
    await expect(rotateKey(one.rotation, ORIGIN)).rejects.toThrow("created a workspace");
    expect(await append(one)).toBeGreaterThan(0);
    expect(await append(two)).toBeGreaterThan(0);
  });
});
