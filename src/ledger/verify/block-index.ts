import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { BITS_BYTES, BLOCK, blockBits, type IndexedEntry, keysOf } from "../reading/block-index.ts";
import { formOf } from "./form.ts";
import { span, type VerificationReport } from "./report.ts";
import type { TreePosition } from "./walk.ts";

/** Keys per query. Unused parameters are null, which no row matches. */
const KEYS = 32;
const PLACES = Array.from({ length: KEYS }, (_, index) => `$${index + 3}`).join(", ");
const BITS = `SELECT key, bits FROM main.ledger_index WHERE workspace_id = $1 AND block = $2 AND key IN (${PLACES})`;
const COUNT = "SELECT COUNT(*) AS count FROM main.ledger_index NOT INDEXED WHERE workspace_id = $1";
const ROWS =
  "SELECT key, block, bits FROM main.ledger_index NOT INDEXED WHERE workspace_id = $1 ORDER BY key, block";
const ENTRY =
  "SELECT CAST(bytes AS BLOB) AS bytes FROM main.ledger NOT INDEXED WHERE workspace_id = $1 AND seq = $2";

/**
 * Maximum number of entries with unknown contents, because they are missing or changed. Past that, the index is not
 * checked.
 */
const MOST_UNKNOWN = 10_000;

interface IndexRow {
  readonly key: string;
  readonly block: number;
  readonly bits: unknown;
}

/** Compares the stored block index, which filters use, with the one computed from the ledger's entries. */
export class IndexCheck {
  readonly #database: ReadOnlyDatabase;
  readonly #workspaceId: number;
  readonly #report: VerificationReport;
  /** Number of blocks that must be indexed. */
  readonly #complete: number;
  readonly #unknown = new Set<number>();
  #block = 0;
  #entries: (IndexedEntry | null)[] = [];
  #rows = 0;

  /** @param size Number of entries for which there must be an index */
  constructor(database: ReadOnlyDatabase, workspaceId: number, size: number, report: VerificationReport) {
    this.#database = database;
    this.#workspaceId = workspaceId;
    this.#report = report;
    this.#complete = Math.floor(size / BLOCK);
  }

  /** MUST be called with each step, in order. */
  take({ seq, entry }: TreePosition): void {
    const block = Math.floor((seq - 1) / BLOCK);
    if (block !== this.#block) {
      this.#close();
      this.#block = block;
    }
    const place = (seq - 1) % BLOCK;
    while (this.#entries.length < place) this.#entries.push(null);
    this.#entries.push(entry);
  }

  /**
   * @param changed The first entry that was changed or is missing. Index rows from there on are not reported, because
   *   they follow from that.
   */
  end(changed: number): void {
    this.#close();
    if (this.#isLost) return;
    const stored = this.#database.get<{ count: number }>(COUNT, [this.#workspaceId])?.count ?? 0;
    if (stored !== this.#rows) this.#findSurplus(changed);
  }

  get #isLost(): boolean {
    return this.#unknown.size > MOST_UNKNOWN;
  }

  #close(): void {
    const entries = this.#entries;
    this.#entries = [];
    if (this.#block >= this.#complete || this.#isLost) return;
    while (entries.length < BLOCK) entries.push(null);
    const mask = new Uint8Array(BITS_BYTES).fill(255);
    for (const [place, entry] of entries.entries()) {
      if (entry) continue;
      this.#unknown.add(this.#block * BLOCK + place + 1);
      const byte = place >> 3;
      mask[byte] = (mask[byte] ?? 0) & ~(1 << (place & 7));
    }
    const expected = [...blockBits(entries.map((entry) => entry ?? {}))];
    for (let from = 0; from < expected.length; from += KEYS) {
      const some = expected.slice(from, from + KEYS);
      const rows = this.#read(some.map(([key]) => key));
      for (const [key, bits] of some) this.#compare(key, bits, rows.get(key), mask);
    }
  }

  #read(keys: readonly string[]): Map<string, IndexRow> {
    const padded: (string | null)[] = [...keys];
    while (padded.length < KEYS) padded.push(null);
    const rows = this.#database.all<IndexRow>(BITS, [this.#workspaceId, this.#block, ...padded]);
    return new Map(rows.map((row) => [row.key, row]));
  }

  #compare(key: string, bits: Uint8Array, row: Pick<IndexRow, "bits"> | undefined, mask: Uint8Array): void {
    const block = this.#block;
    if (row) this.#rows += 1;
    const stored = row?.bits instanceof Uint8Array ? row.bits : new Uint8Array(0);
    const isSame =
      stored.length === BITS_BYTES &&
      bits.every((byte, at) => byte === ((stored[at] ?? 0) & (mask[at] ?? 0)));
    if (isSame) return;
    const first = firstDifference(bits, stored, mask);
    const where = span(block * BLOCK + 1, (block + 1) * BLOCK);
    this.#report.tampered(
      row ? "index_changed" : "index_missing",
      row
        ? `The index of ${where} is wrong about ${quoted(key)}: filters would miss entries, or look for entries that do not match.`
        : `The index of ${where} has no row for ${quoted(key)}: filters would miss these entries.`,
      block * BLOCK + first + 1,
    );
  }

  /** Finds rows that no entry accounts for. Runs only if the number of rows is wrong; takes one query per row. */
  #findSurplus(changed: number): void {
    for (const row of this.#database.rows<IndexRow>(ROWS, [this.#workspaceId])) {
      if ((row.block + 1) * BLOCK >= changed) continue;
      if (row.block >= 0 && row.block < this.#complete && this.#isAccountedFor(row)) continue;
      this.#report.tampered(
        "index_surplus",
        `The index has a row for ${quoted(String(row.key))} in block ${row.block}, although no entry there matches: the row was added.`,
      );
    }
  }

  #isAccountedFor({ key, block, bits }: IndexRow): boolean {
    if (!(bits instanceof Uint8Array)) return false;
    let isUnknown = false;
    for (let place = 0; place < Math.min(BLOCK, bits.length * 8); place++) {
      if (((bits[place >> 3] ?? 0) & (1 << (place & 7))) === 0) continue;
      const keys = this.#keysOf(block * BLOCK + place + 1);
      if (keys?.includes(key)) return true;
      isUnknown ||= keys === null;
    }
    return isUnknown;
  }

  /** Null if the entry is missing or changed. */
  #keysOf(seq: number): string[] | null {
    if (this.#unknown.has(seq)) return null;
    const row = this.#database.get<{ bytes: unknown }>(ENTRY, [this.#workspaceId, seq]);
    const fields = row?.bytes instanceof Uint8Array ? formOf(row.bytes).fields : null;
    return fields && keysOf(fields);
  }
}

function firstDifference(bits: Uint8Array, stored: Uint8Array, mask: Uint8Array): number {
  for (let place = 0; place < BLOCK; place++) {
    const at = place >> 3;
    const differs = ((bits[at] ?? 0) ^ (stored[at] ?? 0)) & (mask[at] ?? 0);
    if ((differs & (1 << (place & 7))) !== 0) return place;
  }
  return 0;
}

function quoted(key: string): string {
  return JSON.stringify(key.length > 80 ? `${key.slice(0, 80)}…` : key);
}
