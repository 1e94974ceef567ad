import type { PassageTerms } from "../segments/segment.ts";
import { passageVector } from "../terms/lexical.ts";
import { termOf, wordsOf } from "../terms/words.ts";

/** A word of the title counts as three of the text: nDCG@10 measured on two collections (design, section 3). */
const TITLE_WEIGHT = 3;
const HEADING_WEIGHT = 2;

export interface AnalysedPassage extends PassageTerms {
  readonly vector: Float32Array | null;
}

/** The index data of a passage. */
export function analysePassage(
  key: number,
  title: readonly string[],
  headings: readonly string[],
  text: string,
): AnalysedPassage {
  const terms = new Map<number, number>();
  const count = (words: readonly string[], weight: number) => {
    for (const word of words) {
      const term = termOf(word);
      terms.set(term, (terms.get(term) ?? 0) + weight);
    }
  };
  const body = wordsOf(text);
  // A heading inside the passage counts as text there, and as a heading for later passages.
  const above = headings.filter((heading) => !text.includes(heading)).flatMap(wordsOf);
  count(title, TITLE_WEIGHT);
  count(above, HEADING_WEIGHT);
  count(body, 1);
  return {
    key,
    length: title.length + above.length + body.length,
    terms,
    vector: passageVector({ title, headings: above, text: body }),
  };
}
