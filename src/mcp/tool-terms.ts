import { takeTurn } from "../base/inflow.ts";
import { isStopWord, termOf, wordsOf } from "../vault/terms/words.ts";
import type { ToolView } from "./tool-view.ts";

/** Number of characters of a description that are searched. */
const SEARCHED = 1_000;
/** A tool with more terms than this is read again by each search. Text without spaces has two terms per character. */
const KEPT_TERMS = 512;
/** Finding the terms of a character takes as long as measuring this number of bytes. */
const CHARACTER_COST = 8;
/** Cost of the tools that are looked at between two turns. */
const SLICE = 16 * 1024;

/** The words that a tool contains, as sorted and distinct terms. */
export interface ToolTerms {
  readonly name: Uint32Array;
  /** Terms of the description that the name does not contain. */
  readonly text: Uint32Array;
}

/** Kept as long as the tool: splitting and stemming its words takes far longer than comparing their terms. */
const kept = new WeakMap<ToolView, ToolTerms>();

/** The sorted, distinct terms by which stems are compared. 32 bits of each are enough for a ranking. */
export function termsOf(text: string): Uint32Array {
  const terms = wordsOf(text).flatMap((word) => (isStopWord(word) ? [] : [termOf(word) >>> 0]));
  return Uint32Array.from(new Set(terms)).sort();
}

/**
 * Looks at the terms of all tools in order, in turns with all other work.
 * @param wanted the number of terms that each tool is compared with
 */
export async function forEachTool(
  workspaceId: number,
  tools: readonly ToolView[],
  wanted: number,
  look: (terms: ToolTerms, index: number) => void,
): Promise<void> {
  let left = 0;
  for (const [index, tool] of tools.entries()) {
    if (left <= 0) {
      const turn = takeTurn(workspaceId, { bytes: SLICE });
      if (turn) await turn;
      left += SLICE;
    }
    const known = kept.get(tool);
    const terms = known ?? readTerms(tool);
    left -= terms.name.length + terms.text.length + wanted;
    if (!known) left -= CHARACTER_COST * (tool.title.length + Math.min(tool.description.length, SEARCHED));
    look(terms, index);
  }
}

/** Calls `found` with the index, in `wanted`, of each term that both contain. Both MUST be sorted. */
export function forEachShared(
  wanted: Uint32Array,
  terms: Uint32Array,
  found: (wantedIndex: number) => void,
): void {
  let at = 0;
  for (const term of terms) {
    while (at < wanted.length && (wanted[at] ?? 0) < term) at += 1;
    if (at === wanted.length) return;
    if (wanted[at] === term) found(at);
  }
}

function readTerms(tool: ToolView): ToolTerms {
  const name = termsOf(apart(tool.title));
  const own = new Set(name);
  const text = termsOf(tool.description.slice(0, SEARCHED)).filter((term) => !own.has(term));
  const terms = { name, text };
  if (name.length + text.length <= KEPT_TERMS) kept.set(tool, terms);
  return terms;
}

/** Splits a name into words: `search_openIssues` is three words. */
function apart(name: string): string {
  return name.replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll(/[^\p{L}\p{N}]+/gu, " ");
}
