import { type Sql, type SqlValue, StoreUnavailable, type Tx } from "../store/db.ts";
import { insertRowsSql } from "../store/many-rows.ts";

/** Entries of one block of the index: those of one tile. */
export const BLOCK = 256;
export const BITS_BYTES = BLOCK / 8;

/** Fields of an entry that the index knows, besides whether a person had a hand in it. */
export const INDEXED = ["agent", "actor", "action", "tier"] as const;
export type IndexedField = (typeof INDEXED)[number];

/** An entry's fields as its bytes have them; of these, what the index is made of. */
export type IndexedEntry = { readonly [field in IndexedField]?: string | number } & {
  readonly oversight?: object;
};

/** Under this, the index has the entries in which a person had a hand. */
export const OVERSIGHT_KEY = "oversight";

export function indexKey(field: IndexedField, value: string | number): string {
  return `${field}:${value}`;
}

/** Under which keys an entry is found. */
export function keysOf(entry: IndexedEntry): string[] {
  const keys: string[] = entry.oversight === undefined ? [] : [OVERSIGHT_KEY];
  for (const field of INDEXED) {
    const value = entry[field];
    if (value !== undefined) keys.push(indexKey(field, value));
  }
  return keys;
}

/** Of 256 entries in their order: by key, which of them have it. */
export function blockBits(entries: Iterable<IndexedEntry>): Map<string, Uint8Array> {
  const found = new Map<string, Uint8Array>();
  // Found by value first: to join the key of each field of each entry would be most of the work.
  const byValue = INDEXED.map((field) => ({ field, bits: new Map<string | number, Uint8Array>() }));
  const bitsOf = (key: string) => {
    const bits = found.get(key) ?? new Uint8Array(BITS_BYTES);
    found.set(key, bits);
    return bits;
  };
  let place = 0;
  for (const entry of entries) {
    if (entry.oversight !== undefined) mark(bitsOf(OVERSIGHT_KEY), place);
    for (const { field, bits } of byValue) {
      const value = entry[field];
      if (value === undefined) continue;
      let known = bits.get(value);
      if (!known) {
        known = bitsOf(indexKey(field, value));
        bits.set(value, known);
      }
      mark(known, place);
    }
    place += 1;
  }
  return found;
}

function mark(bits: Uint8Array, place: number): void {
  const byte = place >> 3;
  bits[byte] = (bits[byte] ?? 0) | (1 << (place & 7));
}

const ROWS = 8;
const COLUMNS = 4;
const INTO = "ledger_index (workspace_id, key, block, bits)";
const INSERT_ONE = insertRowsSql(INTO, COLUMNS, 1);
const INSERT_MANY = insertRowsSql(INTO, COLUMNS, ROWS);

/**
 * Adds a block to the index: what it costs is shared by 256 entries, 1 to 2 µs each, where three indexes with a row an
 * entry cost 12. MUST come in the transaction that completes the block.
 * @throws StoreUnavailable where one of the entries is none that this program wrote
 */
export async function indexBlock(
  tx: Tx,
  workspaceId: number,
  block: number,
  rows: readonly { readonly bytes: string }[],
): Promise<void> {
  const found = [...blockBits(rows.map(({ bytes }, place) => parseEntry(bytes, block * BLOCK + place + 1)))];
  for (let from = 0; from < found.length; ) {
    const count = found.length - from >= ROWS ? ROWS : 1;
    const values: SqlValue[] = [];
    for (const [key, bits] of found.slice(from, from + count)) values.push(workspaceId, key, block, bits);
    await tx.run(count === ROWS ? INSERT_MANY : INSERT_ONE, values);
    from += count;
  }
}

function parseEntry(bytes: string, seq: number): IndexedEntry {
  try {
    const entry: unknown = JSON.parse(bytes);
    if (typeof entry === "object" && entry !== null) return entry;
  } catch {
    // Said below.
  }
  throw new StoreUnavailable(`the ledger's entry ${seq} is not one of ours`);
}

/** Blocks that one look into the index goes past: its rows are few, or as many as `ROWS_AT_ONCE`. */
const BLOCKS_AT_ONCE = 2_048;
const ROWS_AT_ONCE = 64;

/** Entries from `first` to `last`, both included. */
export interface Span {
  readonly first: number;
  readonly last: number;
  readonly order: "asc" | "desc";
}

/** What one look into the index found: in order, and complete up to the entry `upTo`. */
export interface IndexedSeqs {
  readonly found: readonly number[];
  readonly upTo: number;
}

/** The seqs of entries that have all of the keys. All entries of the span MUST be in complete blocks. */
export async function* indexedSeqs(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  keys: readonly string[],
  { first, last, order }: Span,
): AsyncGenerator<IndexedSeqs, void> {
  const isUp = order === "asc";
  const statement = statementFor(keys.length, order);
  let low = blockOf(first);
  let high = blockOf(last);
  while (low <= high) {
    const from = isUp ? low : Math.max(low, high - BLOCKS_AT_ONCE + 1);
    const to = isUp ? Math.min(high, low + BLOCKS_AT_ONCE - 1) : high;
    const rows = await sql.all<IndexRow>(statement, [workspaceId, from, to, ...keys]);
    const found = rows
      .flatMap(({ block, bits }) => (isUp ? seqsOf(block, bits) : seqsOf(block, bits).reverse()))
      .filter((seq) => seq >= first && seq <= last);
    const end = rows.length < ROWS_AT_ONCE ? undefined : rows.at(-1)?.block;
    if (isUp) low = (end ?? to) + 1;
    else high = (end ?? from) - 1;
    yield { found, upTo: isUp ? Math.min(last, low * BLOCK) : Math.max(first, (high + 1) * BLOCK + 1) };
  }
}

/**
 * The seqs of entries that have all of the keys of one set at least, each once. The sets are looked up side by side, and
 * what one of them has found waits until the others have come as far.
 */
export async function* indexedInAny(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  sets: readonly (readonly string[])[],
  span: Span,
): AsyncGenerator<IndexedSeqs, void> {
  const isUp = span.order === "asc";
  const isPast = (seq: number, place: number) => (isUp ? seq > place : seq < place);
  const end = isUp ? span.last : span.first;
  const begin = isUp ? span.first - 1 : span.last + 1;
  const searches = sets.map((keys) => ({
    looks: indexedSeqs(sql, workspaceId, keys, span),
    upTo: begin,
  }));
  let waiting: number[] = [];
  for (let reached = begin; reached !== end; ) {
    for (const search of searches) {
      if (search.upTo !== reached) continue;
      const look = await search.looks.next();
      if (look.done) throw new Error("a search of the index ended before its span did");
      search.upTo = look.value.upTo;
      waiting.push(...look.value.found);
    }
    const places = searches.map(({ upTo }) => upTo);
    reached = isUp ? Math.min(...places) : Math.max(...places);
    const found = [...new Set(waiting)].filter((seq) => !isPast(seq, reached));
    waiting = waiting.filter((seq) => isPast(seq, reached));
    yield { found: found.sort((a, b) => (isUp ? a - b : b - a)), upTo: reached };
  }
}

interface IndexRow {
  readonly block: number;
  /** Of each key, one behind the other. */
  readonly bits: Uint8Array;
}

/** One query for all keys, which takes the blocks that have them all. */
function statementFor(keys: number, order: "asc" | "desc"): string {
  const others = Array.from({ length: keys - 1 }, (_, index) => index + 1);
  const joins = others.map(
    (n) =>
      ` JOIN ledger_index AS k${n} ON k${n}.workspace_id = $1 AND k${n}.key = $${n + 4} AND k${n}.block = k0.block`,
  );
  const bits = [0, ...others].map((n) => `k${n}.bits`).join(" || ");
  return (
    `SELECT k0.block AS block, CAST(${bits} AS BLOB) AS bits FROM ledger_index AS k0${joins.join("")}` +
    ` WHERE k0.workspace_id = $1 AND k0.key = $4 AND k0.block >= $2 AND k0.block <= $3` +
    ` ORDER BY k0.block ${order === "asc" ? "ASC" : "DESC"} LIMIT ${ROWS_AT_ONCE}`
  );
}

function blockOf(seq: number): number {
  return Math.floor((seq - 1) / BLOCK);
}

/** The places where every key has its bit, as seqs in ascending order. */
function seqsOf(block: number, bits: Uint8Array): number[] {
  const seqs: number[] = [];
  for (let byte = 0; byte < BITS_BYTES; byte++) {
    let all = 255;
    for (let at = byte; at < bits.length; at += BITS_BYTES) all &= bits[at] ?? 0;
    for (let place = block * BLOCK + byte * 8 + 1; all !== 0; place++, all >>= 1) {
      if (all & 1) seqs.push(place);
    }
  }
  return seqs;
}
