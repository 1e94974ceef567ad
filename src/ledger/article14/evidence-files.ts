import type { Sql } from "../../store/db.ts";
import { inclusionRanges } from "../proof/ranges.ts";
import { type EntryFilter, findEntry, readEntries } from "../query.ts";
import { TreeReader } from "../tiles.ts";
import { readEntryFields } from "./format/entry.ts";
import { type ErasureLine, erasureWithin, formatErasure, type Span } from "./format/erasures.ts";
import { oversightHeader, oversightRow } from "./format/oversight.ts";
import type { Snapshot } from "./snapshot.ts";
import { inOrder } from "./sources.ts";

/** Whose entries, and which. */
export interface Source {
  readonly db: Pick<Sql, "all" | "get">;
  readonly workspaceId: number;
  readonly filter: Omit<EntryFilter, "from" | "to" | "oversight" | "task">;
  readonly snapshot: Snapshot;
  /** Whether somebody takes the bundle away who sees only what `filter` lets through. */
  readonly isNarrowed: boolean;
}

/** `entries.ndjson`: the exact bytes of each included entry, a line each. `note` is told of each. */
export async function* entryLines(
  { db, workspaceId, filter, snapshot }: Source,
  note: (bytes: string) => void,
): AsyncGenerator<string, void> {
  const span = { ...snapshot.shown, order: "asc" } as const;
  for await (const page of readEntries(db, workspaceId, filter, span)) {
    let lines = "";
    for (const { bytes } of page) {
      note(bytes);
      lines += `${bytes}\n`;
    }
    yield lines;
  }
}

/** `oversight.csv`. */
export async function* oversightLines(source: Source): AsyncGenerator<string, void> {
  yield oversightHeader();
  const { db, workspaceId, filter, snapshot } = source;
  const span = { ...snapshot.shown, order: "asc" } as const;
  for await (const page of readEntries(db, workspaceId, { ...filter, oversight: true }, span)) {
    for (const { bytes } of page) {
      const entry = readEntryFields(bytes);
      const row = entry && oversightRow(entry);
      if (row !== undefined) yield row;
    }
  }
}

/** Lines that share the tiles which were read for their proofs. */
const PROOFS_AT_ONCE = 256;

/** `erasures.ndjson`: what was erased of the range's texts, recorded anywhere up to the snapshot's end. `note` is told of each. */
export async function* erasureLines(
  { db, workspaceId, filter, snapshot, isNarrowed }: Source,
  note: (line: ErasureLine) => void,
): AsyncGenerator<string, void> {
  const all = { first: 1, last: snapshot.size, order: "asc" } as const;
  let tree = new TreeReader(db, workspaceId);
  let count = 0;
  const found = inOrder(
    readEntries(db, workspaceId, { action: "payload.erase" }, all),
    readEntries(db, workspaceId, { action: "payload.expire" }, all),
  );
  for await (const { seq, bytes } of found) {
    const erasure = erasureWithin(bytes, snapshot);
    if (!erasure) continue;
    if (isNarrowed && !(await concerns(db, workspaceId, erasure, { ...filter, ...snapshot.shown }))) continue;
    if (count > 0 && count % PROOFS_AT_ONCE === 0) tree = new TreeReader(db, workspaceId);
    count += 1;
    const inclusion = await tree.hashesOf(inclusionRanges(seq - 1, snapshot.size));
    const line = { ...erasure, inclusion: inclusion.map((hash) => hash.toBase64()) };
    note(line);
    yield formatErasure(line);
  }
}

/** Whether a record of an erasure is about texts of an agent's entries in a span: those of every agent, or some of its own. */
async function concerns(
  db: Pick<Sql, "get">,
  workspaceId: number,
  { payloads }: Pick<ErasureLine, "payloads">,
  { agent, first, last }: { readonly agent?: string | undefined } & Span,
): Promise<boolean> {
  if (payloads === undefined) return true;
  for (const name of payloads) {
    const seq = Number.parseInt(name, 10);
    if (seq < first || seq > last) continue;
    const entry = await findEntry(db, workspaceId, seq);
    if (entry && readEntryFields(entry.bytes)?.agent === agent) return true;
  }
  return false;
}
