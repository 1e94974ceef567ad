import type { IndexState, StoredPassage } from "../index-store.ts";
import type { FoundPassage, Metadata, SearchMode, SearchRequest } from "../messages.ts";
import { documentOf } from "../rows/keys.ts";
import type { Candidate } from "./fuse.ts";
import { NearDuplicates } from "./near-duplicates.ts";

/** Passages read at least, twice as many each time: near-duplicates leave a few results missing, or many. */
const LEAST_AT_ONCE = 4;

/** Selects results from candidates in order, without near-duplicates of better ones, within the character budget. */
export async function gather(
  state: IndexState,
  request: SearchRequest,
  candidates: readonly Candidate[],
  mode: SearchMode,
): Promise<FoundPassage[]> {
  const { topK, maxCharacters } = request;
  const shown = new NearDuplicates(topK);
  const offered: { candidate: Candidate; passage: StoredPassage }[] = [];
  let least = LEAST_AT_ONCE;
  for (let from = 0; from < candidates.length && !shown.isFull; ) {
    const batch = candidates.slice(from, from + Math.max(shown.missing, least));
    if (from > 0) least *= 2;
    from += batch.length;
    const passages = await state.passages(batch.map(({ key }) => key));
    for (const candidate of batch) {
      if (shown.isFull) break;
      const passage = passages.get(candidate.key);
      if (!passage) throw new Error("a passage of the index is not in the store");
      offered.push({ candidate, passage });
      const { start, end, text } = passage;
      shown.offer({ document: documentOf(candidate.key), start, end, text });
    }
  }
  const ranks = request.explain ? ranksOf(candidates) : null;
  const found: FoundPassage[] = [];
  let left = maxCharacters ?? Number.POSITIVE_INFINITY;
  for (const { index: place, duplicates } of shown.chosen()) {
    const item = offered[place];
    if (!item) continue;
    const text = withinBudget(item.passage.text, left, found.length === 0);
    if (text === "") break;
    left -= text.length;
    found.push({
      ...view(item.passage, text),
      score: item.candidate.score,
      explain: ranks && {
        ...ranks(item.candidate, mode),
        recency: item.candidate.recency,
        duplicates: duplicates.map((other) => offered[other]?.passage.chunkId ?? ""),
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

function view(passage: StoredPassage, text: string): Omit<FoundPassage, "score" | "explain"> {
  const { documentId, chunkId, title, scope, sourceUri, start, metadata } = passage;
  const end = start + text.length;
  return {
    documentId,
    chunkId,
    title,
    text,
    scope,
    sourceUri,
    start,
    end,
    metadata: JSON.parse(metadata) as Metadata,
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
