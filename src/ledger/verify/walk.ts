import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { isEqual } from "../proof/hash.ts";
import { TREE } from "../tree-hash.ts";
import { formOf, type VerifiedEntryFields } from "./form.ts";
import type { VerificationReport } from "./report.ts";

/** One place of the tree, in the ledger's order. If entries are missing, places before it may be skipped. */
export interface TreePosition {
  readonly seq: number;
  /** The leaf at this place according to all evidence; null if unknown. */
  readonly leaf: Uint8Array | null;
  /** Whether anything besides the entry's own row confirms the leaf, if that is required. */
  readonly isSure: boolean;
  /** Null if the entry is missing or changed; its contents are not trusted then. */
  readonly entry: VerifiedEntryFields | null;
}

/** A second source of entries' hashes: the tree's tiles. */
export interface LeafWitness {
  /** Undefined if unknown. */
  leafAt(seq: number): Uint8Array | undefined;
  isLeaf(seq: number, leaf: Uint8Array): boolean | undefined;
}

interface LedgerRow {
  readonly seq: number;
  readonly prev: unknown;
  readonly leaf: unknown;
  readonly bytes: unknown;
}

/** A row, with the parsed contents and the hash of its bytes. */
interface EntryRow {
  readonly seq: number;
  /** From the column. */
  readonly prev: Uint8Array;
  /** From the column. */
  readonly leaf: Uint8Array;
  readonly computed: Uint8Array;
  /** Whether the column `leaf` is the hash of the bytes. */
  readonly isWhole: boolean;
  readonly fields: Partial<VerifiedEntryFields> | null;
  readonly problem: string | null;
  /** The hash of the previous entry according to the bytes. */
  readonly said: Uint8Array | null;
}

// Uses no index, since an index could hide rows. Casts only to bytes, because bytes were hashed.
const ROWS =
  "SELECT seq, prev, leaf, CAST(bytes AS BLOB) AS bytes FROM main.ledger NOT INDEXED" +
  " WHERE workspace_id = $1 ORDER BY seq";
const ZEROS = new Uint8Array(32);
const NOTHING = new Uint8Array(0);

/**
 * Walks a workspace's chain once and reports what is wrong with each entry. Entries after a changed one are not
 * reported if they follow its original bytes.
 */
export function* walk(
  database: ReadOnlyDatabase,
  workspaceId: number,
  witness: LeafWitness,
  report: VerificationReport,
): Generator<TreePosition, void> {
  let before: Uint8Array | null = ZEROS;
  let last = 0;
  let time = "";
  for (const [link, next] of inPairs(links(database, workspaceId))) {
    const { seq } = link;
    if (!Number.isSafeInteger(seq) || seq <= last) {
      report.tampered("entry_misplaced", `A row with the number ${seq} comes after entry ${last}.`, seq);
      continue;
    }
    if (seq > last + 1) {
      report.tampered("entry_missing", missing(last + 1, seq - 1), last + 1);
      before = null;
      for (const step of gap(last + 1, link, witness)) {
        before = step.leaf;
        yield step;
      }
    }
    const follower = next?.seq === seq + 1 ? next : undefined;
    const { leaf, isSure } = leafOf(link, follower, witness);
    const isGenuine = isEqual(leaf, link.computed);
    reportLink(report, link, before, isGenuine);
    let entry: VerifiedEntryFields | null = null;
    if (isGenuine) {
      entry = wholeEntry(report, link, time);
      if (entry && entry.ts > time) time = entry.ts;
    }
    yield { seq, leaf, isSure, entry };
    before = leaf;
    last = seq;
  }
}

function* links(database: ReadOnlyDatabase, workspaceId: number): Generator<EntryRow, void> {
  for (const { seq, prev, leaf, bytes } of database.rows<LedgerRow>(ROWS, [workspaceId])) {
    const content = blob(bytes);
    const computed = TREE.leaf(content);
    const { fields, problem } = formOf(content);
    yield {
      seq,
      prev: blob(prev),
      leaf: blob(leaf),
      computed,
      isWhole: isEqual(computed, blob(leaf)),
      fields,
      problem,
      said: typeof fields?.prev === "string" ? hexOf(fields.prev) : null,
    };
  }
}

function* inPairs(links: Iterable<EntryRow>): Generator<readonly [EntryRow, EntryRow | undefined], void> {
  let link: EntryRow | undefined;
  for (const next of links) {
    if (link) yield [link, next];
    link = next;
  }
  if (link) yield [link, undefined];
}

/** The places of missing entries before an entry, with their hashes as far as others know them. */
function* gap(first: number, { seq, said }: EntryRow, witness: LeafWitness): Generator<TreePosition, void> {
  const unknown = { isSure: true, entry: null };
  let at = first;
  for (let leaf = witness.leafAt(at); leaf && at < seq; leaf = witness.leafAt(at)) {
    yield { ...unknown, seq: at, leaf };
    at += 1;
  }
  // The entry after the gap contains the hash of the last missing one.
  if (at < seq) yield { ...unknown, seq: seq - 1, leaf: at === seq - 1 ? said : null };
}

/**
 * The leaf that an entry had when it was written. Its bytes, its row, the next entry (by its column, and by its
 * bytes, which are hashed themselves) and the tile each give a value. If they differ, more than one of them must
 * agree to outweigh the bytes.
 */
function leafOf(
  link: EntryRow,
  next: EntryRow | undefined,
  witness: LeafWitness,
): { readonly leaf: Uint8Array; readonly isSure: boolean } {
  const { computed, isWhole } = link;
  const isFollowed = !next || (isEqual(next.prev, computed) && same(next.said, computed));
  const isInTile = witness.isLeaf(link.seq, computed);
  if (isWhole && (isInTile === undefined || (isFollowed && isInTile))) {
    // If only these two entries can show which of them was replaced, it may be this one.
    return { leaf: computed, isSure: isFollowed };
  }
  const tile = witness.leafAt(link.seq);
  const claims: (readonly [Uint8Array, number])[] = [[link.leaf, 1]];
  if (tile) claims.push([tile, 2]);
  if (next) claims.push([next.prev, 1]);
  if (next?.said) claims.push([next.said, next.isWhole ? 2 : 1]);
  const weightOf = (leaf: Uint8Array) =>
    claims.reduce((sum, [claim, weight]) => sum + (isEqual(claim, leaf) ? weight : 0), 0);
  let best = { leaf: computed, weight: weightOf(computed) };
  for (const [leaf] of claims) {
    const weight = weightOf(leaf);
    if (weight > best.weight && leaf.length === computed.length) best = { leaf, weight };
  }
  return { leaf: best.leaf, isSure: best.weight > 1 };
}

function reportLink(
  report: VerificationReport,
  link: EntryRow,
  before: Uint8Array | null,
  isGenuine: boolean,
): void {
  const { seq } = link;
  if (!isGenuine) {
    report.tampered("entry_changed", changed(link), seq);
  } else if (!link.isWhole) {
    report.tampered(
      "leaf_changed",
      `The hash in the row of entry ${seq} does not match its bytes, which other evidence confirms: the column was changed.`,
      seq,
    );
  }
  if (!before) return;
  const isBehind = isEqual(link.prev, before);
  if (isGenuine && link.problem === null && !same(link.said, before)) {
    report.tampered(
      "chain_broken",
      `According to its bytes, entry ${seq} does not follow entry ${seq - 1}: one of the two was replaced, or entries between them were removed.`,
      seq,
    );
  } else if (!isBehind) {
    report.tampered(
      "prev_changed",
      `The hash of the previous entry in the row of entry ${seq} is not that of entry ${seq - 1}: the column was changed.`,
      seq,
    );
  }
}

/** The fields of an entry with genuine bytes, if this program may have written them. */
function wholeEntry(
  report: VerificationReport,
  { seq, fields, problem }: EntryRow,
  time: string,
): VerifiedEntryFields | null {
  if (problem !== null) {
    report.tampered(
      "entry_foreign",
      `Entry ${seq} is not one that Gatehouse wrote: ${problem}. Another program added it.`,
      seq,
    );
    return null;
  }
  const entry = fields as VerifiedEntryFields;
  if (entry.seq !== seq) {
    report.tampered(
      "entry_misplaced",
      `The row of entry ${seq} contains an entry with the number ${entry.seq}.`,
      seq,
    );
    return null;
  }
  if (entry.ts < time) {
    report.tampered("time_reversed", `Entry ${seq} has an earlier time than an entry before it.`, seq);
  }
  return entry;
}

function changed({ seq, isWhole }: EntryRow): string {
  return isWhole
    ? `Entry ${seq} was replaced: its hash was recomputed, but the next entry and the tree's tiles have a different one.`
    : `Entry ${seq} was changed: its bytes do not match the hash made when it was written.`;
}

function missing(first: number, last: number): string {
  const which = first === last ? `Entry ${first} is` : `Entries ${first} to ${last} are`;
  return `${which} missing, although later entries exist.`;
}

function blob(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : NOTHING;
}

function hexOf(text: string): Uint8Array | null {
  return /^[0-9a-f]{64}$/.test(text) ? Uint8Array.fromHex(text) : null;
}

function same(a: Uint8Array | null, b: Uint8Array): boolean {
  return a !== null && isEqual(a, b);
}
