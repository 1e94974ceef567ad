import { type EntryFields, entryFieldsOf } from "../../article14/format/entry.ts";
import type { Manifest } from "../../article14/format/manifest.ts";
import { isEqual, type TreeHash } from "../../proof/hash.ts";
import { formOf } from "../form.ts";
import { counted, type Report } from "../report.ts";
import type { FileCursor } from "./cursor.ts";

/** A line of `entries.ndjson`. */
interface Line {
  /** Counted from 1. */
  readonly number: number;
  readonly hash: Uint8Array;
  readonly fields: EntryFields;
  readonly problem: string | null;
}

/** An entry whose bytes are not those of its leaf: one of the two was changed. */
interface Mismatch {
  readonly seq: number;
  /** Of `entries.ndjson`. */
  readonly line: number;
  /** Of its bytes. */
  readonly hash: string;
  /** The entry behind it follows these bytes: it is the leaf that was changed. */
  isVouched: boolean;
}

/** Mismatches of which it is looked up what was changed; more are said together. */
const MISMATCHES = 1_000;

/** Lines past those that the manifest counts that are looked at. */
const MORE_LINES = 1_000;

/** Hashes of entries that were passed over, for those that turn up further below. */
const REMEMBERED = 4_096;
const ZEROS = "0".repeat(64);

/** Compares `entries.ndjson` with the leaves of the range, one after another. */
export class EntryWalk {
  readonly #manifest: Manifest;
  readonly #cursor: FileCursor;
  readonly #hash: TreeHash;
  readonly #report: Report;
  readonly #isFiltered: boolean;
  readonly #passed = new Map<number, Uint8Array>();
  readonly #mismatches: Mismatch[] = [];
  #mismatchCount = 0;
  #missing: number[] = [];
  #missingCount = 0;
  #waiting: Line | null = null;
  #lines = 0;
  #before: Uint8Array | null = null;
  #time = "";
  #included = 0;

  constructor(manifest: Manifest, cursor: FileCursor, hash: TreeHash, report: Report) {
    this.#manifest = manifest;
    this.#cursor = cursor;
    this.#hash = hash;
    this.#report = report;
    this.#isFiltered = Object.keys(manifest.filters).length > 0;
  }

  get #isFlooded(): boolean {
    return this.#lines > this.#manifest.counts.included + MORE_LINES;
  }

  /** Entries that stand in their place and are those that were hashed. */
  get included(): number {
    return this.#included;
  }

  /**
   * Looks whether the entry of a leaf is there.
   * @returns its fields, where it is there as it was hashed
   */
  async visit(seq: number, leaf: Uint8Array): Promise<EntryFields | undefined> {
    let line = await this.#line();
    for (; line && line.fields.seq < seq; line = await this.#line()) {
      this.#misplaced(line);
      this.#waiting = null;
    }
    const before = this.#before;
    this.#before = leaf;
    if (line?.fields.seq !== seq) {
      this.#pass(seq, leaf);
      return undefined;
    }
    this.#waiting = null;
    if (!isEqual(line.hash, leaf)) {
      this.#mismatchCount += 1;
      if (this.#mismatches.length < MISMATCHES) {
        this.#mismatches.push({ seq, line: line.number, hash: line.hash.toHex(), isVouched: false });
      }
      return undefined;
    }
    this.#included += 1;
    return this.#check(line, before);
  }

  /**
   * Says what was changed, what is left, and what is missing.
   * @param areLeavesWhole Whether the hashes of `leaves.txt` lead to the root that was signed.
   */
  async end(areLeavesWhole: boolean): Promise<void> {
    this.#reportMismatches(areLeavesWhole);
    for (let line = await this.#line(); line; line = await this.#line()) {
      this.#misplaced(line);
      this.#waiting = null;
    }
    if ((await this.#cursor.drain()) && !this.#isFlooded) {
      this.#report.tampered("entry_changed", "The last line of entries.ndjson breaks off.");
    }
    const { counts } = this.#manifest;
    for (const seq of this.#isFiltered ? [] : this.#missing) {
      this.#report.tampered(
        "entry_missing",
        `Entry ${seq} is missing from entries.ndjson, though nothing was filtered out.`,
        seq,
      );
    }
    const unnamed = this.#missingCount - this.#missing.length;
    if (!this.#isFiltered && unnamed > 0) {
      this.#report.tampered(
        "entry_missing",
        `${counted(unnamed)} more entries are missing from entries.ndjson.`,
      );
    }
    if (this.#lines < counts.included) {
      this.#report.tampered(
        "entries_removed",
        `entries.ndjson holds ${counted(this.#lines)} entries; the manifest counts ${counted(counts.included)}: the others were removed.`,
      );
    } else if (this.#lines > counts.included) {
      this.#report.tampered(
        "entries_added",
        `entries.ndjson holds ${this.#isFlooded ? "more than " : ""}${counted(this.#lines)} entries; the manifest counts ${counted(counts.included)}: the others were added.`,
      );
    }
  }

  #reportMismatches(areLeavesWhole: boolean): void {
    for (const { seq, line, isVouched } of this.#mismatches) {
      if (isVouched && !areLeavesWhole) {
        this.#report.tampered(
          "leaves_changed",
          `The hash of entry ${seq} in leaves.txt was changed: the entry behind it follows the bytes that are in entries.ndjson.`,
          seq,
        );
      } else {
        this.#report.tampered(
          "entry_changed",
          `Entry ${seq} (line ${line} of entries.ndjson) was changed: its bytes are not those that its hash in leaves.txt is of.`,
          seq,
        );
      }
    }
    const unnamed = this.#mismatchCount - this.#mismatches.length;
    if (unnamed > 0) {
      this.#report.tampered(
        "entry_changed",
        `${counted(unnamed)} more entries were changed, or their hashes.`,
      );
    }
  }

  /** The line that is looked at; the next one, once that was dealt with. Lines that are no entries are said and left out. */
  async #line(): Promise<Line | null> {
    while (!this.#waiting) {
      if (this.#isFlooded) return null;
      const bytes = await this.#cursor.line();
      if (!bytes) return null;
      this.#lines += 1;
      const { fields, problem } = formOf(bytes);
      const entry = entryFieldsOf(fields);
      if (!entry) {
        this.#report.tampered("entry_changed", `Line ${this.#lines} of entries.ndjson is no entry.`);
        continue;
      }
      this.#waiting = { number: this.#lines, hash: this.#hash.leaf(bytes), fields: entry, problem };
    }
    return this.#waiting;
  }

  /** An entry that is not where its number says it has to be. */
  #misplaced({ number, fields: { seq }, hash }: Line): void {
    const { first, last } = this.#manifest.range;
    const at = `Line ${number} of entries.ndjson`;
    const passed = this.#passed.get(seq);
    if (seq < first || seq > last) {
      this.#report.tampered(
        "entry_added",
        `${at} is an entry ${seq}, which the range does not hold: it was added.`,
        seq,
      );
    } else if (passed && isEqual(passed, hash)) {
      this.#passed.delete(seq);
      this.#missing = this.#missing.filter((missing) => missing !== seq);
      this.#missingCount -= 1;
      this.#report.tampered(
        "entry_misplaced",
        `${at} is entry ${seq}, behind later ones: the lines were put in another order.`,
        seq,
      );
    } else {
      this.#report.tampered(
        "entry_added",
        `${at} says that it is entry ${seq}, whose place has passed: it was added, or moved from far above.`,
        seq,
      );
    }
  }

  #pass(seq: number, leaf: Uint8Array): void {
    this.#missingCount += 1;
    if (this.#missing.length < REMEMBERED) this.#missing.push(seq);
    else if (this.#isFiltered) {
      this.#missing.shift();
      this.#missing.push(seq);
    }
    this.#passed.set(seq, leaf);
    if (this.#passed.size > REMEMBERED) {
      const oldest = this.#passed.keys().next().value;
      if (oldest !== undefined) this.#passed.delete(oldest);
    }
  }

  /** What the bytes of a genuine entry say. */
  #check({ fields, problem }: Line, before: Uint8Array | null): EntryFields | undefined {
    const { seq, ts, prev } = fields;
    if (problem !== null) {
      this.#report.tampered(
        "entry_foreign",
        `Entry ${seq} is not one that Gatehouse wrote: ${problem}. Another program put it into the ledger.`,
        seq,
      );
      return undefined;
    }
    const expected = seq === 1 ? ZEROS : before?.toHex();
    const last = this.#mismatches.at(-1);
    if (last?.seq === seq - 1) last.isVouched = prev === last.hash;
    else if (expected !== undefined && prev !== expected) {
      this.#report.tampered(
        "chain_broken",
        `Entry ${seq} says in its bytes that it follows another than entry ${seq - 1} of leaves.txt.`,
        seq,
      );
    }
    if (ts < this.#time) {
      this.#report.tampered("time_reversed", `Entry ${seq} says that it is older than one before it.`, seq);
    } else this.#time = ts;
    this.#checkFilter(fields);
    return fields;
  }

  #checkFilter(fields: EntryFields): void {
    const { range, filters } = this.#manifest;
    const { seq, ts } = fields;
    if ((range.from !== undefined && ts < range.from) || (range.to !== undefined && ts >= range.to)) {
      this.#report.tampered(
        "out_of_period",
        `Entry ${seq} is of ${ts}, which the period does not hold.`,
        seq,
      );
    }
    for (const field of ["agent", "actor", "action", "tier"] as const) {
      const wanted = filters[field];
      if (wanted === undefined || fields[field] === wanted) continue;
      this.#report.tampered(
        "filter_mismatch",
        `Entry ${seq} is included, though its ${field} is not ${wanted}, which the filter asks for.`,
        seq,
      );
    }
  }
}
