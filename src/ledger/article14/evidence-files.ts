import type { Sql } from "../../store/db.ts";
import { inclusionRanges } from "../proof/ranges.ts";
import { type EvidenceFilter, entryTest } from "../reading/entry-filter.ts";
import type { EvidenceReader } from "../reading/evidence.ts";
import { evidencePages } from "../reading/evidence-pages.ts";
import type { StoredEntry } from "../reading/query.ts";
import { TreeReader } from "../tiles.ts";
import { readEntryFields } from "./format/entry.ts";
import { type ErasureLine, erasureWithin, formatErasure, type SeqSpan } from "./format/erasures.ts";
import { oversightHeader, oversightRow } from "./format/oversight.ts";
import type { Snapshot } from "./snapshot.ts";

/** The workspace and the entries to export. */
export interface Source {
  readonly db: Pick<Sql, "all" | "get">;
  readonly workspaceId: number;
  readonly evidence: EvidenceReader;
  readonly filter: Omit<EvidenceFilter, "oversight" | "task">;
  readonly snapshot: Snapshot;
  /** Whether the exporter may see only the entries that match `filter`. */
  readonly isNarrowed: boolean;
}

/** `entries.ndjson`: the exact bytes of each included entry, one per line. `note` is called with each entry. */
export async function* entryLines(
  { evidence, filter, snapshot }: Source,
  note: (bytes: string) => void,
): AsyncGenerator<string, void> {
  const span = { ...snapshot.shown, order: "asc" } as const;
  for await (const page of evidencePages(evidence, span, entryTest(filter))) {
    let lines = "";
    for (const { bytes } of page) {
      note(bytes);
      lines += `${bytes}\n`;
    }
    yield lines;
  }
}

/** `oversight.csv`. */
export async function* oversightLines({ evidence, filter, snapshot }: Source): AsyncGenerator<string, void> {
  yield oversightHeader();
  const span = { ...snapshot.shown, order: "asc" } as const;
  for await (const page of evidencePages(evidence, span, entryTest({ ...filter, oversight: true }))) {
    for (const { bytes } of page) {
      const entry = readEntryFields(bytes);
      const row = entry && oversightRow(entry);
      if (row !== undefined) yield row;
    }
  }
}

/** Lines whose proofs share one reader, and so the tiles it has read. */
const PROOFS_AT_ONCE = 256;
const isErase = entryTest({ action: "payload.erase" });
const isExpire = entryTest({ action: "payload.expire" });

/**
 * `erasures.ndjson`: erasures of the range's texts, recorded anywhere up to the end of the snapshot. One pass over
 * all entries: `look` is called with each entry, `note` with each erasure.
 */
export async function* erasureLines(
  { db, workspaceId, evidence, filter, snapshot, isNarrowed }: Source,
  note: (line: ErasureLine) => void,
  look: (entry: StoredEntry) => void,
): AsyncGenerator<string, void> {
  const all = { first: 1, last: snapshot.size, order: "asc" } as const;
  let tree = new TreeReader(db, workspaceId);
  let count = 0;
  for await (const page of evidencePages(evidence, all, () => true)) {
    for (const entry of page) {
      look(entry);
      const erasure = isErase(entry) || isExpire(entry) ? erasureWithin(entry.bytes, snapshot) : null;
      if (!erasure) continue;
      if (isNarrowed && !(await concerns(evidence, erasure, { ...filter, ...snapshot.shown }))) continue;
      if (count > 0 && count % PROOFS_AT_ONCE === 0) tree = new TreeReader(db, workspaceId);
      count += 1;
      const inclusion = await tree.hashesOf(inclusionRanges(entry.seq - 1, snapshot.size));
      const line = { ...erasure, inclusion: inclusion.map((hash) => hash.toBase64()) };
      note(line);
      yield formatErasure(line);
    }
  }
}

/** Whether an erasure concerns texts of an agent's entries in a span: those of all agents, or some of this agent. */
async function concerns(
  evidence: Pick<EvidenceReader, "entry">,
  { payloads }: Pick<ErasureLine, "payloads">,
  { agent, agentSince, first, last }: Pick<EvidenceFilter, "agent" | "agentSince"> & SeqSpan,
): Promise<boolean> {
  if (payloads === undefined) return true;
  const isOwn = entryTest({ agent, agentSince });
  for (const name of payloads) {
    const seq = Number.parseInt(name, 10);
    if (seq < first || seq > last) continue;
    const entry = await evidence.entry(seq);
    if (entry && isOwn(entry)) return true;
  }
  return false;
}
