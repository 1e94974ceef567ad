/** The test vectors of Certificate Transparency (RFC 6962), which its implementations share. */
import { describe, expect, test } from "bun:test";
import { isConsistent, rootOfInclusion } from "../../../src/ledger/proof/check.ts";
import {
  consistencyRanges,
  inclusionRanges,
  type LeafRange,
  nodesOf,
} from "../../../src/ledger/proof/ranges.ts";
import { foldRight, GrowingTree } from "../../../src/ledger/proof/tree.ts";
import { TREE } from "../../../src/ledger/tree-hash.ts";

const LEAVES = [
  "",
  "00",
  "10",
  "2021",
  "3031",
  "40414243",
  "5051525354555657",
  "606162636465666768696a6b6c6d6e6f",
].map((hex) => TREE.leaf(Uint8Array.fromHex(hex)));

/** Roots by size, starting with the empty tree. */
const ROOTS = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

/** Nodes used in the paths, named after the leaves below them. */
const LEAF_0 = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
const LEAF_1 = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7";
const LEAF_4 = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b";
const LEAF_6 = "b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f";
const LEAVES_0_1 = "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125";
const LEAVES_2_3 = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e";
const LEAVES_4_5 = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a";
const LEAVES_6_7 = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0";
const LEAVES_0_3 = "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7";
const LEAVES_4_7 = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4";

/** Index (from 0), size, path. */
const INCLUSION: readonly (readonly [number, number, readonly string[]])[] = [
  [0, 1, []],
  [0, 8, [LEAF_1, LEAVES_2_3, LEAVES_4_7]],
  [5, 8, [LEAF_4, LEAVES_6_7, LEAVES_0_3]],
  [2, 3, [LEAVES_0_1]],
  [1, 5, [LEAF_0, LEAVES_2_3, LEAF_4]],
];
/** Older size, newer size, proof. */
const CONSISTENCY: readonly (readonly [number, number, readonly string[]])[] = [
  [1, 1, []],
  [1, 8, [LEAF_1, LEAVES_2_3, LEAVES_4_7]],
  [6, 8, [LEAVES_4_5, LEAVES_6_7, LEAVES_0_3]],
  [2, 5, [LEAVES_2_3, LEAF_4]],
  [6, 7, [LEAVES_4_5, LEAF_6, LEAVES_0_3]],
];

const bytes = (hexes: readonly string[]) => hexes.map((hex) => Uint8Array.fromHex(hex));
const head = (size: number) => ({ size, root: Uint8Array.fromHex(ROOTS[size] ?? "") });

function hashOf(range: LeafRange): Uint8Array {
  const nodes = nodesOf(range).map(({ level, index }) => {
    const tree = new GrowingTree(TREE);
    for (const leaf of LEAVES.slice(index * 2 ** level, (index + 1) * 2 ** level)) tree.append(leaf);
    return tree.root();
  });
  return foldRight(TREE, nodes) ?? TREE.empty();
}

test("the roots of the trees of 0 to 8 leaves", () => {
  const tree = new GrowingTree(TREE);
  const roots = [tree.root().toHex()];
  for (const leaf of LEAVES) {
    tree.append(leaf);
    roots.push(tree.root().toHex());
  }
  expect(roots).toEqual(ROOTS);
  expect(ROOTS.map((_, size) => hashOf({ start: 0, end: size }).toHex())).toEqual(ROOTS);
});

describe("the path of a leaf (from 0) in a tree", () => {
  test.each(INCLUSION)("%p of %p", (index, size, path) => {
    expect(inclusionRanges(index, size).map((range) => hashOf(range).toHex())).toEqual([...path]);
    const root = rootOfInclusion(TREE, LEAVES[index] ?? new Uint8Array(), index, size, bytes(path));
    expect(root?.toHex()).toBe(ROOTS[size]);
  });
});

describe("the proof that one tree extends another", () => {
  test.each(CONSISTENCY)("%p to %p", (from, to, proof) => {
    expect(consistencyRanges(from, to).map((range) => hashOf(range).toHex())).toEqual([...proof]);
    expect(isConsistent(TREE, head(from), head(to), bytes(proof))).toBe(true);
  });
});
