import { parseJson } from "../../../base/json-limits.ts";
import type { ReportEntryFields } from "../../article14/format/entry.ts";
import { type ErasureLine, erases, erasureWithin } from "../../article14/format/erasures.ts";
import type { Manifest } from "../../article14/format/manifest.ts";
import { rootOfInclusion } from "../../proof/check.ts";
import { isEqual, type TreeHash } from "../../proof/hash.ts";
import type { VerificationReport } from "../report.ts";
import type { FileCursor } from "./cursor.ts";
import { hashesOf } from "./trust.ts";

const DECODER = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const MOST_HASHES = 128;

/** Checks `erasures.ndjson`: each record must be in the ledger and match its line, and none may be missing. */
export class ErasureWalk {
  readonly #manifest: Manifest;
  readonly #cursor: FileCursor;
  readonly #hash: TreeHash;
  readonly #root: Uint8Array;
  readonly #report: VerificationReport;
  #reached = 0;
  #lines = 0;
  #isEnded = false;

  constructor(manifest: Manifest, cursor: FileCursor, hash: TreeHash, report: VerificationReport) {
    this.#manifest = manifest;
    this.#cursor = cursor;
    this.#hash = hash;
    this.#root = Uint8Array.fromHex(manifest.tree.root);
    this.#report = report;
  }

  get lines(): number {
    return this.#lines;
  }

  /** Called with each included entry, in order. An entry that erased something in the range must be in the file. */
  async visit(entry: ReportEntryFields): Promise<void> {
    if (this.#report.isFlooded || !erases(entry, this.#manifest.range)) return;
    while (!this.#isEnded && this.#reached < entry.seq) await this.#read();
    if (this.#reached === entry.seq) return;
    this.#report.tampered(
      "erasure_missing",
      `Entry ${entry.seq} records the erasure of texts, but erasures.ndjson does not list it: its line was removed.`,
      entry.seq,
    );
  }

  async end(): Promise<void> {
    while (!this.#isEnded) await this.#read();
    if ((await this.#cursor.drain()) && !this.#report.isFlooded) {
      this.#report.tampered("erasure_changed", "The last line of erasures.ndjson is truncated.");
    }
  }

  async #read(): Promise<void> {
    const bytes = this.#report.isFlooded ? null : await this.#cursor.line();
    if (!bytes) {
      this.#isEnded = true;
      return;
    }
    this.#lines += 1;
    const line = parseLine(bytes);
    const at = `Line ${this.#lines} of erasures.ndjson`;
    if (!line) {
      this.#report.tampered("erasure_changed", `${at} is not the record of an erasure.`);
      return;
    }
    const { seq } = line;
    if (seq <= this.#reached) {
      this.#report.tampered(
        "erasure_changed",
        `${at} comes after the line of a later entry: the lines were reordered.`,
        seq,
      );
      return;
    }
    this.#reached = seq;
    const { tree, range } = this.#manifest;
    const leaf = this.#hash.leaf(new TextEncoder().encode(line.entry));
    const root = rootOfInclusion(this.#hash, leaf, seq - 1, tree.size, hashesOf(line.inclusion));
    if (root === null || !isEqual(root, this.#root)) {
      this.#report.tampered(
        "erasure_not_proven",
        `${at} contains an entry ${seq} that is not in the ledger.`,
        seq,
      );
      return;
    }
    const { inclusion: _, ...said } = line;
    if (JSON.stringify(erasureWithin(line.entry, range)) !== JSON.stringify(said)) {
      this.#report.tampered("erasure_changed", `${at} contradicts entry ${seq}, on which it is based.`, seq);
    }
  }
}

function parseLine(bytes: Uint8Array): ErasureLine | undefined {
  let value: unknown;
  try {
    value = parseJson(DECODER.decode(bytes));
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { seq, entry, inclusion } = value as Readonly<Record<string, unknown>>;
  const isRight =
    Number.isSafeInteger(seq) &&
    typeof entry === "string" &&
    Array.isArray(inclusion) &&
    inclusion.length <= MOST_HASHES &&
    inclusion.every((hash) => typeof hash === "string");
  return isRight ? (value as ErasureLine) : undefined;
}
