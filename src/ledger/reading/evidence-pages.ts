import { takeTurn } from "../../base/inflow.ts";
import { TILE_WIDTH } from "../tiles.ts";
import type { SeqRange } from "./block-index.ts";
import type { EntryTest } from "./entry-filter.ts";
import { blockOf, type EvidenceReader } from "./evidence.ts";
import { parsedEntry } from "./parsed-entry.ts";
import { type EntryFilter, LOOK_COST, type ScanResult, type StoredEntry } from "./query.ts";

/**
 * The matching entries of a span in order, one block at a time. A page may be empty. Blocks take turns with all
 * other work.
 * @throws LedgerChanged
 */
export async function* evidencePages(
  evidence: EvidenceReader,
  span: SeqRange,
  matches: EntryTest,
): AsyncGenerator<readonly StoredEntry[], void> {
  for await (const { entries } of evidenceLooks(evidence, span, matches)) yield entries;
}

/** The same, with the seq reached, from which a later read can continue. @throws LedgerChanged */
export async function* evidenceLooks(
  evidence: EvidenceReader,
  { first, last, order }: SeqRange,
  matches: EntryTest,
): AsyncGenerator<ScanResult, void> {
  const isUp = order === "asc";
  for (const block of blocksOf({ first, last, order })) {
    const entries = await evidence.block(block);
    const found = entries.filter((entry) => entry.seq >= first && entry.seq <= last && matches(entry));
    const reached = isUp ? Math.min(last, (block + 1) * TILE_WIDTH) : Math.max(first, block * TILE_WIDTH + 1);
    yield {
      entries: isUp ? found : found.reverse(),
      reached,
      isLast: reached === (isUp ? last : first),
    };
    const turn = takeTurn(evidence.workspaceId, { bytes: LOOK_COST });
    if (turn) await turn;
  }
}

/** The seq and leaf of every entry of a span, regardless of filters. @throws LedgerChanged */
export async function* leafPages(
  evidence: EvidenceReader,
  span: Pick<SeqRange, "first" | "last">,
): AsyncGenerator<readonly Pick<StoredEntry, "seq" | "leaf">[], void> {
  for (const block of blocksOf({ ...span, order: "asc" })) {
    const leaves = await evidence.leaves(block);
    yield leaves.filter(({ seq }) => seq >= span.first && seq <= span.last);
    const turn = takeTurn(evidence.workspaceId, { bytes: LOOK_COST });
    if (turn) await turn;
  }
}

/**
 * The entries of a period; none if `first` is past `last`. Times never go backwards, so this is a binary search.
 * @throws LedgerChanged
 */
export async function evidenceSpan(
  evidence: Pick<EvidenceReader, "size" | "entry">,
  { from, to }: Pick<EntryFilter, "from" | "to">,
): Promise<{ readonly first: number; readonly last: number }> {
  return {
    first: from === undefined ? 1 : await firstAt(evidence, from),
    last: to === undefined ? evidence.size : (await firstAt(evidence, to)) - 1,
  };
}

/**
 * The first seq at or after `time`; one past the last if there is none. An entry without a time counts as if it had
 * the time of the next entry that has one.
 */
async function firstAt(evidence: Pick<EvidenceReader, "size" | "entry">, time: string): Promise<number> {
  let low = 1;
  let high = evidence.size + 1;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    let at = middle;
    let ts = await timeOf(evidence, at);
    while (ts === undefined && at + 1 < high) ts = await timeOf(evidence, ++at);
    if (ts !== undefined && ts < time) low = at + 1;
    else high = middle;
  }
  return low;
}

async function timeOf(evidence: Pick<EvidenceReader, "entry">, seq: number): Promise<string | undefined> {
  const { ts } = parsedEntry((await evidence.entry(seq))?.bytes ?? "");
  return typeof ts === "string" ? ts : undefined;
}

function* blocksOf({ first, last, order }: SeqRange): Generator<number, void> {
  if (first > last) return;
  const [low, high] = [blockOf(first), blockOf(last)];
  if (order === "asc") for (let block = low; block <= high; block++) yield block;
  else for (let block = high; block >= low; block--) yield block;
}
