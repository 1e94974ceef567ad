import type { Sql } from "../../store/db.ts";
import { inclusionRanges } from "../proof/ranges.ts";
import { type EntryFilter, readEntries } from "../query.ts";
import { TreeReader } from "../tiles.ts";
import { readEntryFields } from "./format/entry.ts";
import { type ErasureLine, erasureWithin, formatErasure } from "./format/erasures.ts";
import { oversightHeader, oversightRow } from "./format/oversight.ts";
import type { Snapshot } from "./snapshot.ts";
import { inOrder } from "./sources.ts";

/** Whose entries, and which. */
export interface Source {
  readonly db: Pick<Sql, "all" | "get">;
  readonly workspaceId: number;
  readonly filter: Omit<EntryFilter, "from" | "to" | "oversight" | "task">;
  readonly snapshot: Snapshot;
}

/** `entries.ndjson`: the exact bytes of each included entry, a line each. `note` is told of each. */
export async function* entryLines(
  { db, workspaceId, filter, snapshot }: Source,
  note: (bytes: string) => void,
): AsyncGenerator<string, void> {
  const span = { first: snapshot.first, last: snapshot.last, order: "asc" } as const;
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
  const span = { first: snapshot.first, last: snapshot.last, order: "asc" } as const;
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
  { db, workspaceId, snapshot }: Source,
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
    if (count > 0 && count % PROOFS_AT_ONCE === 0) tree = new TreeReader(db, workspaceId);
    count += 1;
    const inclusion = await tree.hashesOf(inclusionRanges(seq - 1, snapshot.size));
    const line = { ...erasure, inclusion: inclusion.map((hash) => hash.toBase64()) };
    note(line);
    yield formatErasure(line);
  }
}
