import type { IndexReader, PassageRow } from "../index-reader.ts";
import type { FoundPassage, Metadata, SearchMode, SearchRequest } from "../messages.ts";
import { documentOf } from "../rows/keys.ts";
import type { Candidate } from "./fuse.ts";
import { NearDuplicates } from "./near-duplicates.ts";

/** Passages read at a time while results are collected. */
const BATCH = 12;

/** Selects results from candidates in order, without near-duplicates of better ones, within the character budget. */
export function gather(
  index: IndexReader,
  request: SearchRequest,
  candidates: readonly Candidate[],
  mode: SearchMode,
): FoundPassage[] {
  const { topK, maxCharacters } = request;
  const shown = new NearDuplicates(topK);
  const offered: { candidate: Candidate; row: PassageRow; text: string }[] = [];
  for (let from = 0; from < candidates.length && !shown.isFull; from += BATCH) {
    const batch = candidates.slice(from, from + BATCH);
    const rows = index.passages(batch.map(({ key }) => key));
    for (const candidate of batch) {
      if (shown.isFull) break;
      const row = rows.get(candidate.key);
      if (!row) throw new Error("a passage of the index is not in the store");
      const document = documentOf(candidate.key);
      const text = index.text(document, row.start, row.end);
      offered.push({ candidate, row, text });
      shown.offer({ document, start: row.start, end: row.end, text });
    }
  }
  const ranks = request.explain ? ranksOf(candidates) : null;
  const found: FoundPassage[] = [];
  let left = maxCharacters ?? Number.POSITIVE_INFINITY;
  for (const { index: place, duplicates } of shown.chosen()) {
    const item = offered[place];
    if (!item) continue;
    const text = withinBudget(item.text, left, found.length === 0);
    if (text === "") break;
    left -= text.length;
    found.push({
      ...view(item.row, text),
      score: item.candidate.score,
      explain: ranks && {
        ...ranks(item.candidate, mode),
        recency: item.candidate.recency,
        duplicates: duplicates.map((other) => offered[other]?.row.chunk_id ?? ""),
      },
    });
  }
  return found;
}

/**
 * Adds whole passages as long as they fit. If the first one alone is too long, it is cut, so that there is an answer.
 */
function withinBudget(text: string, left: number, isFirst: boolean): string {
  if (text.length <= left) return text;
  if (!isFirst) return "";
  const cut = text.slice(0, left);
  const space = cut.search(/\s\S*$/);
  return (space > left / 2 ? cut.slice(0, space) : cut).replace(/[\ud800-\udbff]$/, "");
}

function view(row: PassageRow, text: string): Omit<FoundPassage, "score" | "explain"> {
  return {
    documentId: row.document_id,
    chunkId: row.chunk_id,
    title: row.title,
    text,
    scope: row.scope,
    sourceUri: row.source_uri,
    start: row.start,
    end: row.start + text.length,
    metadata: JSON.parse(row.metadata) as Metadata,
  };
}

/** The rank of each candidate by words alone and by vectors alone. */
function ranksOf(candidates: readonly Candidate[]) {
  const rank = (part: "keyword" | "vector") => {
    const held = candidates.filter((candidate) => (candidate[part] ?? 0) > 0);
    const order = held.sort((left, right) => (right[part] ?? 0) - (left[part] ?? 0) || left.key - right.key);
    return new Map(order.map(({ key }, index) => [key, index + 1]));
  };
  const keyword = rank("keyword");
  const vector = rank("vector");
  return (candidate: Candidate, mode: SearchMode) => ({
    keyword:
      mode === "vector" ? null : { rank: keyword.get(candidate.key) ?? null, score: candidate.keyword },
    vector:
      candidate.vector === null ? null : { rank: vector.get(candidate.key) ?? null, score: candidate.vector },
  });
}
