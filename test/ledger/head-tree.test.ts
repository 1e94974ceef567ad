import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { HeadTree } from "../../src/ledger/heads/head-tree.ts";
import { NodeHeads } from "../../src/ledger/heads/node-heads.ts";
import { StoreUnavailable } from "../../src/store/db.ts";
import { Oracle } from "./proof/oracle.ts";
import { draft, openLedger } from "./support.ts";
import { allFindings, verify } from "./verify/scene.ts";

const leafOf = (n: number) => Oracle.leafHash(`head ${n}`);

test("only the last workspace can be removed", () => {
  const tree = new HeadTree();
  tree.set(3, leafOf(1));
  tree.set(7, leafOf(2));
  for (const id of [3, 5]) expect(() => tree.removeLast(id)).toThrow(RangeError);
});

test("whatever is changed, added and removed, the root is that of RFC 9162 over the leaves", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat({ max: 70 }), fc.nat({ max: 9 })), { maxLength: 200 }), (steps) => {
      const tree = new HeadTree();
      const leaves: Uint8Array[] = [];
      for (const [place, kind] of steps) {
        const leaf = leafOf(place * 10 + kind);
        if (kind < 2 && leaves.length > 0) {
          leaves.pop();
          // Numbers with gaps, as if creating some workspaces had failed.
          tree.removeLast(1 + 3 * leaves.length);
        } else {
          const at = Math.min(place, leaves.length);
          leaves[at] = leaf;
          tree.set(1 + 3 * at, leaf);
          expect(tree.leafOf(1 + 3 * at)).toEqual(leaf);
        }
        expect(tree.size).toBe(leaves.length);
        expect(tree.root().toHex()).toBe(Buffer.from(new Oracle(leaves).root(leaves.length)).toString("hex"));
      }
    }),
    { numRuns: 100, seed: 7 },
  );
});

describe("a group of transactions that is lost at its commit", () => {
  test("leaves the heads as they were signed, and the next signature covers what exists", async () => {
    const bench = await openLedger();
    await bench.ledger.record(1, draft());
    const { heads } = bench;
    if (!(heads instanceof NodeHeads)) throw new Error("SQLite has the heads of one node");
    const before = heads.together;
    const attacker = bench.own;
    // A commit writes the head of all ledgers last. By then the ledger's own head is already in memory.
    attacker.exec(
      "CREATE TRIGGER lose BEFORE UPDATE ON ledger_node_heads BEGIN SELECT RAISE(ROLLBACK, 'lost'); END",
    );
    await expect(bench.ledger.record(1, draft())).rejects.toThrow(StoreUnavailable);
    await expect(bench.ledger.record(2, draft())).rejects.toThrow(StoreUnavailable);
    expect(heads.together).toEqual(before);
    attacker.exec("DROP TRIGGER lose");
    expect(await bench.ledger.record(1, draft())).toBe(2);
    expect(await bench.ledger.record(2, draft())).toBe(1);
    const found = allFindings(await verify(bench.path)).filter(({ code }) => /head|tail|key/.test(code));
    expect(found).toEqual([]);
    await bench.close();
  });
});
