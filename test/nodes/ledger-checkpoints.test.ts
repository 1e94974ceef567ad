/** Checkpoints of ledgers that several nodes append to: in order, never too far apart, the same on every node. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { EntryDraft } from "../../src/ledger/entry.ts";
import { isConsistent } from "../../src/ledger/proof/check.ts";
import { parseCheckpoints, parseSignedCheckpoint } from "../../src/ledger/proof/checkpoint.ts";
import { TREE } from "../../src/ledger/tree-hash.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { tempDir } from "../support/process.ts";
import { until } from "../support/until.ts";
import { type LedgerNode, type LedgerNodes, openLedgerNodes } from "./ledger-support.ts";

setDefaultTimeout(60_000);

const EVERY = 8;
const READ: EntryDraft = {
  ...{ phase: "single", action: "agent.list", outcome: "succeeded", channel: "rest", actor: "token:tok_1" },
};

describe.skipIf(missingPostgres !== undefined)("checkpoints of two nodes", () => {
  let bench: LedgerNodes;
  let directory: ReturnType<typeof tempDir>;
  const nodes: LedgerNode[] = [];

  beforeEach(async () => {
    directory = tempDir();
    bench = await openLedgerNodes();
  });
  afterEach(async () => {
    for (const { checkpoints } of nodes.splice(0)) await checkpoints.stop();
    await bench.close();
    directory.remove();
  });

  const fileOf = (index: number) => join(directory.path, `checkpoints-${index}`);

  async function start(rule: object = {}): Promise<LedgerNode> {
    const node = await bench.open({ checkpointEvery: EVERY, checkpointFile: fileOf(nodes.length), ...rule });
    nodes.push(node);
    node.checkpoints.start();
    return node;
  }

  async function stored(workspaceId = 1): Promise<{ readonly size: number; readonly note: string }[]> {
    const rows = await bench.database.query<{ size: string; note: string }>(
      "SELECT size, note FROM ledger_checkpoints WHERE workspace_id = $1 ORDER BY created_at, size",
      [workspaceId],
    );
    return rows.map(({ size, note }) => ({ size: Number(size), note }));
  }

  const signedUpTo = async (workspaceId = 1) => (await stored(workspaceId)).at(-1)?.size ?? -1;

  async function append(node: LedgerNode, count: number, workspaceId = 1): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => node.ledger.record(workspaceId, READ)));
  }

  /** Waits until no checkpoint is due. */
  async function signed(workspaceId = 1): Promise<void> {
    const size = (await nodes[0]?.heads.committed(workspaceId))?.size ?? 0;
    await until(async () => (await signedUpTo(workspaceId)) > size - EVERY);
  }

  test("are in order and never further apart than the rule, and each node proves them", async () => {
    const both = [await start(), await start()];
    for (let round = 0; round < 20; round++)
      await Promise.all(both.map((node) => append(node, 1 + (round % 7))));
    await signed();
    const checkpoints = await stored();
    const sizes = checkpoints.map(({ size }) => size);
    expect(sizes).toEqual([...new Set(sizes)].sort((a, b) => a - b));
    for (const [index, size] of sizes.entries())
      expect(size - (sizes[index - 1] ?? 0)).toBeLessThanOrEqual(EVERY);
    for (const { size, note } of checkpoints) {
      const { checkpoint } = parseSignedCheckpoint(note);
      for (const { proofs } of both) {
        expect((await proofs.head(1, size)).root).toEqual(checkpoint.root);
        const proof = await proofs.consistency(1, size);
        if (!proof) throw new Error("no proof");
        expect(isConsistent(TREE, checkpoint, proof.head, proof.consistency)).toBe(true);
      }
    }
  });

  test("are appended to the file of each node, each once and in order", async () => {
    const both = [await start(), await start()];
    for (let round = 0; round < 10; round++) await Promise.all(both.map((node) => append(node, 3)));
    await append(both[1] as LedgerNode, 1, 2);
    await signed();
    await nodes[0]?.checkpoints.stop();
    const inFile = (index: number) =>
      existsSync(fileOf(index)) ? parseCheckpoints(readFileSync(fileOf(index), "utf8")) : [];
    const signedSizes = async () => (await stored()).map(({ size }) => size).filter((size) => size > 0);
    const sizesIn = (index: number) =>
      inFile(index)
        .map(({ checkpoint }) => checkpoint)
        .filter(({ origin, size }) => origin.endsWith("/w1") && size > 0)
        .map(({ size }) => size);
    // The rule's seconds may pass at any moment, and then one more is signed.
    let expected: number[] = [];
    await until(async () => {
      expected = await signedSizes();
      return sizesIn(1).at(-1) === expected.at(-1);
    });
    const [first, second] = [sizesIn(0), sizesIn(1)];
    // The first node has stopped, so its file may lack the one that was signed last.
    expect(first).toEqual(expected.slice(0, first.length));
    expect(first.length).toBeGreaterThanOrEqual(expected.length - 1);
    // The second file begins with what was signed after its node had started.
    expect(second).toEqual(expected.slice(-second.length));
    expect(second.length).toBeGreaterThanOrEqual(expected.length - 1);
  });

  test("go on when the node that signed has left, also for a workspace of another node", async () => {
    const [first, second] = [await start(), await start()];
    await until(async () => (await signedUpTo()) >= 0);
    bench.workspaces.push({ id: 3, name: "w3" });
    await second.db.tx(null, async (tx) => {
      await tx.run("INSERT INTO workspaces (id, name, created_at) VALUES (3, 'w3', 0)");
      await second.ledger.begin(tx, 3);
      await second.ledger.append(tx, 3, READ);
    });
    await until(async () => (await signedUpTo(3)) >= 1);
    await append(second, EVERY, 3);
    await until(async () => (await signedUpTo(3)) >= EVERY);
    await first.checkpoints.stop();
    await first.leave();
    await append(second, EVERY, 3);
    await append(second, EVERY);
    await until(async () => (await signedUpTo(3)) >= 2 * EVERY && (await signedUpTo()) >= EVERY);
  });

  test("follow the rule of the node that signs, which records each change once", async () => {
    await start({ checkpointEvery: 16 });
    const rules = async () => {
      const rows = await bench.database.query<{ bytes: string }>(
        `SELECT bytes FROM ledger WHERE workspace_id = 1 AND bytes LIKE '%"config.change"%' ORDER BY seq`,
      );
      return rows.map(({ bytes }) => JSON.parse(bytes).detail.checkpoint_every);
    };
    await until(async () => (await rules()).length === 1);
    const second = await start({ checkpointEvery: 32 });
    await second.checkpoints.recordRule();
    expect(await rules()).toEqual([16]);
    await nodes[0]?.checkpoints.stop();
    await until(async () => (await rules()).length === 2);
    expect(await rules()).toEqual([16, 32]);
  });
});
