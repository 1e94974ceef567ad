import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isConsistent, rootOfInclusion, type TreeHead } from "../../../src/ledger/proof/check.ts";
import { isEqual } from "../../../src/ledger/proof/hash.ts";
import { consistencyRanges, inclusionRanges } from "../../../src/ledger/proof/ranges.ts";
import { TREE } from "../../../src/ledger/tree-hash.ts";
import { numberedLeaves, Oracle } from "./oracle.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** Every pair of sizes up to `ALL`, and random ones up to `MOST`. */
const ALL = 300;
const MOST = 6_000;
const oracle = new Oracle(numberedLeaves(MOST));
const head = (size: number): TreeHead => ({ size, root: oracle.root(size) });

function includes(leaf: Uint8Array, index: number, { size, root }: TreeHead, proof: readonly Uint8Array[]) {
  const found = rootOfInclusion(TREE, leaf, index, size, proof);
  return found !== null && isEqual(found, root);
}
const isPath = (index: number, size: number) =>
  includes(oracle.leaf(index), index, head(size), oracle.path(index, size));
const isProof = (from: number, to: number) =>
  isConsistent(TREE, head(from), head(to), oracle.proof(from, to));

const hashes = (ranges: readonly { start: number; end: number }[]) =>
  ranges.map(({ start, end }) => oracle.root(end, start));
const areSame = (a: readonly Uint8Array[], b: readonly Uint8Array[]) =>
  a.length === b.length && a.every((hash, index) => isEqual(hash, b[index] ?? hash.subarray(1)));

/** Two numbers: the first is less than the second, and the second is at most `most`. */
const below = (most: number) =>
  fc
    .integer({ min: 1, max: most })
    .chain((size) => fc.tuple(fc.integer({ min: 0, max: size - 1 }), fc.constant(size)));
const notAHash = fc.constantFrom(0, 31, 33, 64).map((length) => new Uint8Array(length));

/** Every proof that differs from this one in one respect. `other` is a hash that occurs nowhere in the tree. */
function mutations(proof: readonly Uint8Array[], other: Uint8Array): (readonly [string, Uint8Array[]])[] {
  const all: (readonly [string, Uint8Array[]])[] = [];
  for (let at = 0; at <= proof.length; at++) {
    all.push([`one more at ${at}`, proof.toSpliced(at, 0, other)]);
    const hash = proof[at];
    if (hash === undefined) continue;
    all.push([`${at} is another`, proof.with(at, other)]);
    all.push([
      `${at} has one bit changed`,
      proof.with(
        at,
        hash.map((byte, index) => (index === 31 ? byte ^ 1 : byte)),
      ),
    ]);
    all.push([`${at} is cut`, proof.with(at, hash.slice(0, 31))]);
    all.push([`${at} is empty`, proof.with(at, new Uint8Array())]);
    all.push([`${at} is longer`, proof.with(at, Uint8Array.of(...hash, 0))]);
    all.push([`${at} is left out`, proof.toSpliced(at, 1)]);
    all.push([`${at} comes twice`, proof.toSpliced(at, 0, hash)]);
    const next = proof[at + 1];
    if (next) all.push([`${at} and the next are swapped`, proof.with(at, next).with(at + 1, hash)]);
  }
  return all;
}

const NUMBERS = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53] as const;

describe("an inclusion proof is refused", () => {
  const alien = Oracle.leafHash("of another tree");

  test("with any change of any of its hashes, its leaf, its index or its tree", () => {
    const accepted: string[] = [];
    fc.assert(
      fc.property(below(600), ([index, size]) => {
        const leaf = oracle.leaf(index);
        const path = oracle.path(index, size);
        const refuse = (what: string, isAccepted: boolean) => {
          if (isAccepted) accepted.push(`${index} of ${size}: ${what}`);
        };
        for (const [what, changed] of mutations(path, alien)) {
          refuse(what, includes(leaf, index, head(size), changed));
        }
        refuse("another leaf", includes(alien, index, head(size), path));
        refuse("a leaf that is cut", includes(leaf.slice(0, 31), index, head(size), path));
        refuse("another root", includes(leaf, index, { size, root: alien }, path));
        for (const other of [index - 1, index + 1, size - 1 - index, size, size + 1]) {
          if (other !== index) refuse(`as ${other}`, includes(leaf, other, head(size), path));
        }
        for (const other of [index + 1, size - 1, size + 1, 2 * size]) {
          if (other !== size) refuse(`in the tree of ${other}`, includes(leaf, index, head(other), path));
        }
      }),
      { numRuns: 150 },
    );
    expect(accepted).toEqual([]);
  });

  test("for an invalid number of a leaf, or of leaves", () => {
    const leaf = oracle.leaf(0);
    for (const number of NUMBERS) {
      expect(rootOfInclusion(TREE, leaf, number, 1, [])).toBeNull();
      expect(rootOfInclusion(TREE, leaf, 0, number, [])).toBeNull();
    }
    expect(rootOfInclusion(TREE, leaf, 0, 0, [])).toBeNull();
  });

  test("at once if it has a million hashes", () => {
    const long = Array.from({ length: 1_000_000 }, () => alien);
    expect(rootOfInclusion(TREE, alien, 0, Number.MAX_SAFE_INTEGER, long)).toBeNull();
  });
});

describe("a consistency proof is refused", () => {
  const alien = Oracle.leafHash("of another tree");

  test("with any change of any of its hashes, or of one of its trees", () => {
    const accepted: string[] = [];
    fc.assert(
      fc.property(below(600), ([from, to]) => {
        const proof = oracle.proof(from, to);
        const refuse = (what: string, isAccepted: boolean) => {
          if (isAccepted) accepted.push(`${from} to ${to}: ${what}`);
        };
        for (const [what, changed] of mutations(proof, alien)) {
          refuse(what, isConsistent(TREE, head(from), head(to), changed));
        }
        refuse("another older root", isConsistent(TREE, { size: from, root: alien }, head(to), proof));
        if (from > 0)
          refuse("another newer root", isConsistent(TREE, head(from), { size: to, root: alien }, proof));
        refuse("the trees the other way round", isConsistent(TREE, head(to), head(from), proof));
        for (const other of [from - 1, from + 1, to]) {
          if (other < 1 || other === from || from === 0) continue;
          refuse(`from ${other}`, isConsistent(TREE, head(other), head(to), proof));
        }
        for (const other of [to - 1, to + 1, 2 * to]) {
          if (other < from || from === 0) continue;
          refuse(`to ${other}`, isConsistent(TREE, head(from), head(other), proof));
        }
      }),
      { numRuns: 150 },
    );
    expect(accepted).toEqual([]);
  });

  test("from a tree to itself with another root, including the empty tree", () => {
    for (const size of [0, 1, 2, 255]) {
      expect(isConsistent(TREE, head(size), { size, root: alien }, [])).toBe(false);
      expect(isConsistent(TREE, { size, root: alien }, head(size), [])).toBe(false);
    }
  });

  test("from an empty tree that has a root, or with hashes", () => {
    expect(isConsistent(TREE, { size: 0, root: oracle.root(1) }, head(5), [])).toBe(false);
    expect(isConsistent(TREE, head(0), head(5), [oracle.root(5)])).toBe(false);
  });

  test("at once if it has a million hashes", () => {
    const long = Array.from({ length: 1_000_000 }, () => alien);
    for (const size of [0.5, 1, 3]) {
      expect(isConsistent(TREE, { size, root: oracle.root(1) }, head(5), long)).toBe(false);
    }
  });

  test("for an invalid number of leaves, and for invalid roots", () => {
    for (const size of NUMBERS) {
      expect(isConsistent(TREE, { size, root: oracle.root(0) }, head(5), [])).toBe(false);
      expect(isConsistent(TREE, head(0), { size, root: oracle.root(5) }, [])).toBe(false);
    }
    fc.assert(
      fc.property(notAHash, below(50), (root, [from, to]) => {
        expect(isConsistent(TREE, { size: from, root }, head(to), oracle.proof(from, to))).toBe(false);
        expect(isConsistent(TREE, head(from), { size: to, root }, oracle.proof(from, to))).toBe(false);
      }),
    );
  });
});

describe("proofs as defined by RFC 9162 are made and accepted", () => {
  test(`for every leaf of every tree up to ${ALL}`, () => {
    const wrong: string[] = [];
    for (let size = 1; size <= ALL; size++) {
      for (let index = 0; index < size; index++) {
        if (!areSame(hashes(inclusionRanges(index, size)), oracle.path(index, size))) {
          wrong.push(`${index} of ${size} is made otherwise`);
        }
        if (!isPath(index, size)) wrong.push(`${index} of ${size} is refused`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test(`for every pair of trees up to ${ALL}`, () => {
    const wrong: string[] = [];
    for (let to = 0; to <= ALL; to++) {
      for (let from = 0; from <= to; from++) {
        if (!areSame(hashes(consistencyRanges(from, to)), oracle.proof(from, to))) {
          wrong.push(`${from} to ${to} is made otherwise`);
        }
        if (!isProof(from, to)) wrong.push(`${from} to ${to} is refused`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test(`for trees up to ${MOST}`, () => {
    fc.assert(
      fc.property(below(MOST), ([smaller, size]) => {
        expect(hashes(inclusionRanges(smaller, size))).toEqual(oracle.path(smaller, size));
        expect(isPath(smaller, size)).toBe(true);
        expect(hashes(consistencyRanges(smaller, size))).toEqual(oracle.proof(smaller, size));
        expect(isProof(smaller, size)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
