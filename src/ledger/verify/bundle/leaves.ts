import type { Manifest } from "../../article14/format/manifest.ts";
import { HASH_BYTES, type TreeHash } from "../../proof/hash.ts";
import { type LeafRange, nodesOf } from "../../proof/ranges.ts";
import { GrowingTree } from "../../proof/tree.ts";
import { counted, type VerificationReport } from "../report.ts";
import type { Anchors } from "./anchors.ts";
import type { FileCursor } from "./cursor.ts";
import { hashesOf } from "./trust.ts";

const DECODER = new TextDecoder("utf-8", { fatal: true });
const LEAF = /^([1-9]\d{0,15}) ([0-9a-f]{64})$/;

/**
 * Builds the bundle's tree from the subtrees left of the range, each leaf in `leaves.txt`, and the subtrees right of
 * the range. The result must be the signed root.
 */
export class LeafWalk {
  readonly #manifest: Manifest;
  readonly #cursor: FileCursor;
  readonly #tree: GrowingTree;
  readonly #anchors: Anchors;
  readonly #report: VerificationReport;
  #isBroken = false;

  constructor(
    manifest: Manifest,
    cursor: FileCursor,
    hash: TreeHash,
    anchors: Anchors,
    report: VerificationReport,
  ) {
    this.#manifest = manifest;
    this.#cursor = cursor;
    this.#tree = new GrowingTree(hash);
    this.#anchors = anchors;
    this.#report = report;
  }

  /** Adds the subtrees before the range. */
  begin(): void {
    const { first } = this.#manifest.range;
    this.#anchors.compare(this.#tree);
    this.#grow({ start: 0, end: first - 1 }, this.#manifest.tree.before);
  }

  /**
   * The leaf of the next entry; null if it is missing from `leaves.txt`, which is reported.
   * @throws LineTooLong, ArchiveError
   */
  async next(seq: number): Promise<Uint8Array | null> {
    if (this.#isBroken) return null;
    const line = await this.#cursor.line();
    const found = line && LEAF.exec(decoded(line));
    if (found?.[2] === undefined || Number(found[1]) !== seq) {
      this.#isBroken = true;
      const instead = found ? `that of entry ${found[1]}` : line ? "something else" : "no further line";
      this.#report.tampered(
        "leaves_changed",
        `leaves.txt contains ${instead} instead of the hash of entry ${seq}: a line was removed, added or moved.`,
        seq,
      );
      return null;
    }
    const leaf = Uint8Array.fromHex(found[2]);
    this.#tree.append(leaf);
    this.#anchors.compare(this.#tree);
    return leaf;
  }

  /**
   * Adds the subtrees after the range and compares the root.
   * @returns whether every hash is the one that was signed
   * @throws ArchiveError
   */
  async end(): Promise<boolean> {
    const { range, tree } = this.#manifest;
    if ((await this.#cursor.drain()) && !this.#isBroken) {
      this.#isBroken = true;
      this.#report.tampered(
        "leaves_changed",
        `leaves.txt continues after entry ${range.last}, the last of the range.`,
      );
    }
    if (this.#isBroken) return false;
    this.#grow({ start: range.last, end: tree.size }, tree.after);
    if (this.#isBroken) return false;
    const isWhole = this.#tree.root().toHex() === tree.root;
    if (!isWhole) {
      this.#report.tampered(
        "root_differs",
        `The hashes in leaves.txt do not lead to the signed root: the hash of at least one of the entries ${counted(range.first)} to ${counted(range.last)} was changed, or the manifest's description of the tree.`,
      );
    }
    return isWhole;
  }

  #grow(range: LeafRange, given: readonly string[]): void {
    const nodes = nodesOf(range);
    const hashes = hashesOf(given);
    if (nodes.length !== hashes.length || hashes.some(({ length }) => length !== HASH_BYTES)) {
      this.#isBroken = true;
      this.#report.tampered(
        "manifest_contradicts",
        "The manifest lacks hashes that lead from the range to the root of the tree.",
      );
      return;
    }
    for (const [place, { level }] of nodes.entries()) {
      this.#tree.append(hashes[place] ?? new Uint8Array(HASH_BYTES), level);
      this.#anchors.compare(this.#tree);
    }
  }
}

function decoded(line: Uint8Array): string {
  try {
    return DECODER.decode(line);
  } catch {
    return "";
  }
}
