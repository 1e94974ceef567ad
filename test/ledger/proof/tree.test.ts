import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { HASH_BYTES, treeHash } from "../../../src/ledger/proof/hash.ts";
import { GrowingTree } from "../../../src/ledger/proof/tree.ts";
import { sha256, TREE } from "../../../src/ledger/tree-hash.ts";
import { numberedLeaves, Oracle } from "./oracle.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

const LEAVES = 2_048;
const oracle = new Oracle(numberedLeaves(LEAVES));

function grown(size: number): GrowingTree {
  const tree = new GrowingTree(TREE);
  for (let leaf = 0; leaf < size; leaf++) tree.append(oracle.leaf(leaf));
  return tree;
}

describe("a subtree is refused", () => {
  test("at every position where such a tree cannot have it, and the tree stays unchanged", () => {
    const wrong: string[] = [];
    for (let size = 1; size <= 64; size++) {
      for (let level = 1; level <= 7; level++) {
        const tree = grown(size);
        let isRefused = false;
        try {
          tree.append(oracle.root(2 ** level), level);
        } catch (error) {
          isRefused = error instanceof RangeError && tree.size === size;
        }
        if (isRefused !== size % 2 ** level > 0) wrong.push(`level ${level} at ${size}`);
        if (isRefused && !Buffer.from(tree.root()).equals(oracle.root(size))) wrong.push(`root of ${size}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test.each([0, 31, 33])("if its hash has %p bytes: nothing is made of it", (length) => {
    const tree = grown(1);
    expect(() => tree.append(new Uint8Array(length))).toThrow(RangeError);
  });
});

describe("a tree that grows", () => {
  test("has the root of RFC 9162 at every size", () => {
    const tree = new GrowingTree(TREE);
    const wrong: number[] = [];
    for (let size = 0; size <= 1_100; size++) {
      if (tree.size !== size || !Buffer.from(tree.root()).equals(oracle.root(size))) wrong.push(size);
      tree.append(oracle.leaf(size));
    }
    expect(wrong).toEqual([]);
  });

  test("has the same root however large the subtrees are that it is built from", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 60 }), (levels) => {
        const tree = new GrowingTree(TREE);
        for (const wanted of levels) {
          let level = wanted;
          while (tree.size % 2 ** level > 0) level -= 1;
          const end = tree.size + 2 ** level;
          if (end > LEAVES) break;
          tree.append(oracle.root(end, tree.size), level);
          expect(tree.size).toBe(end);
          expect(tree.root()).toEqual(oracle.root(end));
        }
      }),
      { numRuns: 200 },
    );
  });

  test("does not remember its earlier roots", () => {
    const tree = grown(5);
    expect(tree.root()).toEqual(tree.root());
    tree.append(oracle.leaf(5));
    expect(tree.root()).toEqual(oracle.root(6));
  });
});

describe("hashes", () => {
  test("of a leaf, of two nodes and of nothing hash different input", () => {
    const seen: string[] = [];
    const hash = treeHash((data) => {
      seen.push(data.toHex());
      return sha256(data);
    });
    hash.empty();
    hash.leaf(Uint8Array.of(7));
    hash.node(new Uint8Array(HASH_BYTES).fill(1), new Uint8Array(HASH_BYTES).fill(2));
    expect(seen).toEqual(["", "0007", `01${"01".repeat(32)}${"02".repeat(32)}`]);
  });

  test.each([
    [31, 32],
    [32, 31],
    [33, 32],
    [32, 0],
  ])("of %p and %p bytes do not make a node", (left, right) => {
    expect(() => TREE.node(new Uint8Array(left), new Uint8Array(right))).toThrow(RangeError);
  });
});
