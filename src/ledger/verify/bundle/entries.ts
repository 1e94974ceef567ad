import { entryFieldsOf, type ReportEntryFields } from "../../article14/format/entry.ts";
import type { Manifest } from "../../article14/format/manifest.ts";
import { isEqual, type TreeHash } from "../../proof/hash.ts";
import { formOf } from "../form.ts";
import { counted, type VerificationReport } from "../report.ts";
import type { FileCursor } from "./cursor.ts";

/** A line of `entries.ndjson`. */
interface EntryLine {
  /** Counted from 1. */
  readonly number: number;
  readonly hash: Uint8Array;
  /** In bytes. */
  readonly size: number;
  readonly fields: ReportEntryFields;
  readonly problem: string | null;
}

/** An entry whose bytes do not match its leaf: one of the two was changed. */
interface EntryMismatch {
  readonly seq: number;
  /** Line number in `entries.ndjson`. */
  readonly line: number;
  /** Hash of the entry's bytes, in hex. */
  readonly hash: string;
  /** Whether the next entry links to these bytes, so that it was the leaf that was changed. */
  isVouched: boolean;
}

/** Maximum number of mismatches that are analysed. Further ones are only counted. */
const MISMATCHES = 1_000;

/** Maximum number of lines examined beyond the number in the manifest. */
const MORE_LINES = 1_000;

/** Maximum number of hashes of skipped entries that are kept, to recognise entries that appear further down. */
const REMEMBERED = 4_096;
/** Maximum total size in bytes of lines that are kept until their turn. */
const EARLY_BYTES = 16_000_000;
const ZEROS = "0".repeat(64);

/** Compares `entries.ndjson` with the leaves of the range, one after another. */
export class EntryWalk {
  readonly #manifest: Manifest;
  readonly #cursor: FileCursor;
  readonly #hash: TreeHash;
  readonly #report: VerificationReport;
  readonly #isFiltered: boolean;
  readonly #passed = new Map<number, Uint8Array>();
  readonly #mismatches: EntryMismatch[] = [];
  #mismatchCount = 0;
  #missing: number[] = [];
  #missingCount = 0;
  /** Lines that appear before lines of earlier entries, kept until their turn. */
  readonly #early = new Map<number, EntryLine>();
  #earlyBytes = 0;
  #waiting: EntryLine | null = null;
  #following: EntryLine | null = null;
  #reached = 0;
  #lines = 0;
  #before: Uint8Array | null = null;
  #time = "";
  #included = 0;

  constructor(manifest: Manifest, cursor: FileCursor, hash: TreeHash, report: VerificationReport) {
    this.#manifest = manifest;
    this.#cursor = cursor;
    this.#hash = hash;
    this.#report = report;
    this.#isFiltered = Object.keys(manifest.filters).length > 0;
  }

  get #isFlooded(): boolean {
    return this.#report.isFlooded || this.#lines > this.#manifest.counts.included + MORE_LINES;
  }

  /** Number of entries that are in their place and match their leaf. */
  get included(): number {
    return this.#included;
  }

  /** Finds the entry of a leaf. @returns its fields if it is present and matches the leaf */
  async visit(seq: number, leaf: Uint8Array): Promise<ReportEntryFields | undefined> {
    let line = await this.#line();
    for (; line && line.fields.seq < seq; line = await this.#line()) {
      this.#misplaced(line);
      this.#waiting = null;
    }
    const before = this.#before;
    this.#before = leaf;
    this.#reached = seq;
    const early = this.#early.get(seq);
    if (early) {
      this.#early.delete(seq);
      this.#earlyBytes -= early.size;
      this.#sayMoved(early, "before earlier ones");
      return this.#compare(early, leaf, before);
    }
    if (line?.fields.seq === seq) {
      this.#waiting = null;
      return this.#compare(line, leaf, before);
    }
    this.#pass(seq, leaf);
    return undefined;
  }

  #compare(line: EntryLine, leaf: Uint8Array, before: Uint8Array | null): ReportEntryFields | undefined {
    if (isEqual(line.hash, leaf)) {
      this.#included += 1;
      return this.#check(line, before);
    }
    this.#mismatchCount += 1;
    if (this.#mismatches.length < MISMATCHES) {
      const { seq } = line.fields;
      this.#mismatches.push({ seq, line: line.number, hash: line.hash.toHex(), isVouched: false });
    }
    return undefined;
  }

  /**
   * Reports what was changed, what is surplus, and what is missing.
   * @param areLeavesWhole Whether the hashes in `leaves.txt` lead to the signed root
   */
  async end(areLeavesWhole: boolean): Promise<void> {
    this.#reportMismatches(areLeavesWhole);
    for (let line = await this.#line(); line; line = await this.#line()) {
      this.#misplaced(line);
      this.#waiting = null;
    }
    if ((await this.#cursor.drain()) && !this.#isFlooded) {
      this.#report.tampered("entry_changed", "The last line of entries.ndjson is truncated.");
    }
    // Entries that were not examined are neither missing nor removed.
    if (this.#report.isFlooded) return;
    const { counts } = this.#manifest;
    for (const seq of this.#missing) {
      this.#report.tampered(
        "entry_missing",
        `Entry ${seq} is missing from entries.ndjson, although no filter was applied.`,
        seq,
      );
    }
    const unnamed = this.#missingCount - this.#missing.length;
    if (unnamed > 0) {
      this.#report.tampered(
        "entry_missing",
        `${counted(unnamed)} more entries are missing from entries.ndjson.`,
      );
    }
    if (this.#lines < counts.included) {
      this.#report.tampered(
        "entries_removed",
        `entries.ndjson contains ${counted(this.#lines)} entries, but the manifest counts ${counted(counts.included)}: the others were removed.`,
      );
    } else if (this.#lines > counts.included) {
      this.#report.tampered(
        "entries_added",
        `entries.ndjson contains ${this.#isFlooded ? "more than " : ""}${counted(this.#lines)} entries, but the manifest counts ${counted(counts.included)}: the others were added.`,
      );
    }
  }

  #reportMismatches(areLeavesWhole: boolean): void {
    for (const { seq, line, isVouched } of this.#mismatches) {
      if (isVouched && !areLeavesWhole) {
        this.#report.tampered(
          "leaves_changed",
          `The hash of entry ${seq} in leaves.txt was changed: the next entry matches the bytes in entries.ndjson.`,
          seq,
        );
      } else {
        this.#report.tampered(
          "entry_changed",
          `Entry ${seq} (line ${line} of entries.ndjson) was changed: its bytes do not match its hash in leaves.txt.`,
          seq,
        );
      }
    }
    const unnamed = this.#mismatchCount - this.#mismatches.length;
    if (unnamed > 0) {
      this.#report.tampered(
        "entry_changed",
        `${counted(unnamed)} more entries, or their hashes, were changed.`,
      );
    }
  }

  /** The current line. Advances only after it has been handled. */
  async #line(): Promise<EntryLine | null> {
    this.#waiting ??= this.#following ?? (await this.#read());
    if (this.#waiting === this.#following) this.#following = null;
    while (this.#waiting) {
      this.#following ??= await this.#read();
      const next = this.#following?.fields.seq;
      const isEarly = next !== undefined && next > this.#reached && next < this.#waiting.fields.seq;
      if (!isEarly || this.#earlyBytes > EARLY_BYTES) break;
      this.#early.set(this.#waiting.fields.seq, this.#waiting);
      this.#earlyBytes += this.#waiting.size;
      this.#waiting = this.#following;
      this.#following = null;
    }
    return this.#waiting;
  }

  /** The next line that contains an entry of the range. Other lines are reported and skipped. */
  async #read(): Promise<EntryLine | null> {
    const { first, last } = this.#manifest.range;
    while (!this.#isFlooded) {
      const bytes = await this.#cursor.line();
      if (!bytes) return null;
      this.#lines += 1;
      const at = `Line ${this.#lines} of entries.ndjson`;
      const { fields, problem } = formOf(bytes);
      const entry = entryFieldsOf(fields);
      if (!entry) {
        this.#report.tampered("entry_changed", `${at} is not an entry.`);
      } else if (entry.seq < first || entry.seq > last) {
        const what = `${at} is entry ${entry.seq}, which is outside the range: it was added.`;
        this.#report.tampered("entry_added", what, entry.seq);
      } else {
        const hash = this.#hash.leaf(bytes);
        return { number: this.#lines, hash, size: bytes.length, fields: entry, problem };
      }
    }
    return null;
  }

  /** Reports an entry that appears too late. */
  #misplaced(line: EntryLine): void {
    const { seq } = line.fields;
    const passed = this.#passed.get(seq);
    if (!passed || !isEqual(passed, line.hash)) {
      const what = `Line ${line.number} of entries.ndjson claims to be entry ${seq}, which belongs further up: it was added, or moved down.`;
      this.#report.tampered("entry_added", what, seq);
      return;
    }
    this.#passed.delete(seq);
    if (!this.#isFiltered) {
      this.#missing = this.#missing.filter((missing) => missing !== seq);
      this.#missingCount -= 1;
    }
    this.#sayMoved(line, "after later ones");
  }

  #sayMoved({ number, fields: { seq } }: EntryLine, where: string): void {
    const what = `Line ${number} of entries.ndjson is entry ${seq}, ${where}: the lines were reordered.`;
    this.#report.tampered("entry_misplaced", what, seq);
  }

  /**
   * Skips a leaf without an entry. If a filter withholds entries, it is impossible to tell which of the absent ones
   * were removed.
   */
  #pass(seq: number, leaf: Uint8Array): void {
    if (!this.#isFiltered) {
      this.#missingCount += 1;
      if (this.#missing.length < REMEMBERED) this.#missing.push(seq);
    }
    this.#passed.set(seq, leaf);
    if (this.#passed.size > REMEMBERED) {
      const oldest = this.#passed.keys().next().value;
      if (oldest !== undefined) this.#passed.delete(oldest);
    }
  }

  /** Checks the contents of a genuine entry. */
  #check({ fields, problem }: EntryLine, before: Uint8Array | null): ReportEntryFields | undefined {
    const { seq, ts, prev } = fields;
    if (problem !== null) {
      this.#report.tampered(
        "entry_foreign",
        `Entry ${seq} was not written by Gatehouse: ${problem}. Another program added it to the ledger.`,
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
        `According to its bytes, entry ${seq} does not follow entry ${seq - 1} of leaves.txt.`,
        seq,
      );
    }
    if (ts < this.#time) {
      this.#report.tampered(
        "time_reversed",
        `Entry ${seq} has an earlier time than an entry before it.`,
        seq,
      );
    } else this.#time = ts;
    this.#checkFilter(fields);
    return fields;
  }

  #checkFilter(fields: ReportEntryFields): void {
    const { range, filters, created_at } = this.#manifest;
    const { seq, ts } = fields;
    if (ts > created_at) {
      const what = `Entry ${seq} was written at ${ts}, after the bundle was made according to its manifest (${created_at}).`;
      this.#report.tampered("made_before_its_entries", what, seq);
    }
    if ((range.from !== undefined && ts < range.from) || (range.to !== undefined && ts >= range.to)) {
      this.#report.tampered("out_of_period", `Entry ${seq} was written at ${ts}, outside the period.`, seq);
    }
    for (const field of ["agent", "actor", "action", "tier"] as const) {
      const wanted = filters[field];
      if (wanted === undefined || fields[field] === wanted) continue;
      this.#report.tampered(
        "filter_mismatch",
        `Entry ${seq} is included, although the filter requires ${field} ${wanted}.`,
        seq,
      );
    }
  }
}
