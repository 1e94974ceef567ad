/** A piece of text found by a search, with its source. */
export interface SourcePassage {
  readonly text: string;
  readonly source: string;
}

export interface RankedSentence extends SourcePassage {
  /** The number of distinct words of the question that it contains. */
  readonly overlap: number;
}

const STOP_WORDS = new Set(
  (
    "a an and any are as at be but by can did do does for from had has have how i if in is it its me my no not of on " +
    "or our so that the their them there these they this to was we were what when where which who why will with you your"
  ).split(" "),
);
const SENTENCE_END = /(?<=[.!?])\s+|(?<=[。！？])|\n+/u;
/**
 * The maximum number of characters of a question that are read. A question may be a million characters long, but its
 * point is at the beginning.
 */
const QUESTION_LENGTH = 4_096;
const WORD = /\p{Script=Han}|[\p{L}\p{N}]+/gu;

/** A heading names the topic of the text below it, but contains no information about it. */
const HEADING = /^#{1,6}\s/;
/** Sentences whose overlap is less than this share of the best sentence's are left out. */
const WORTH = 0.5;

/**
 * The sentences that share the most words with the question, best first; ties stay in the order found. If no sentence
 * shares a word: a heading that does, otherwise the first sentence. Empty without passages. Headings are used only if
 * no sentence matches.
 */
export function bestSentences(
  question: string,
  passages: readonly SourcePassage[],
  limit: number,
): readonly RankedSentence[] {
  if (passages.length === 0) return [];
  const wanted = stems(question.slice(0, QUESTION_LENGTH));
  const seen = new Set<string>();
  const sentences: RankedSentence[] = [];
  const headings: RankedSentence[] = [];
  for (const { text, source } of passages) {
    for (const piece of text.split(SENTENCE_END)) {
      const sentence = piece.trim();
      // Passages overlap, so a sentence that occurs in two of them is quoted only once.
      if (sentence === "" || seen.has(sentence)) continue;
      seen.add(sentence);
      const ranked = { text: sentence, source, overlap: shared(wanted, stems(sentence)) };
      (HEADING.test(sentence) || isTitle(sentence, source) ? headings : sentences).push(ranked);
    }
  }
  const matching = sentences.filter(({ overlap }) => overlap > 0);
  if (matching.length === 0) {
    const named = headings.filter(({ overlap }) => overlap > 0);
    return (named.length > 0 ? named : [...sentences, ...headings]).slice(0, 1);
  }
  matching.sort((a, b) => b.overlap - a.overlap);
  const best = matching[0]?.overlap ?? 0;
  return matching.filter(({ overlap }) => overlap >= best * WORTH).slice(0, limit);
}

/** A source begins with the document's title. */
function isTitle(sentence: string, source: string): boolean {
  return source.toLowerCase().startsWith(sentence.toLowerCase());
}

function shared(wanted: ReadonlySet<string>, words: ReadonlySet<string>): number {
  let count = 0;
  for (const word of wanted) if (words.has(word)) count += 1;
  return count;
}

function stems(text: string): ReadonlySet<string> {
  const words = text.toLowerCase().match(WORD) ?? [];
  return new Set(words.filter((word) => !STOP_WORDS.has(word)).map(stem));
}

/** Removes the commonest English endings, so that "refunds" finds "refunded". */
function stem(word: string): string {
  for (const ending of ["ingly", "edly", "ies", "ing", "ed", "es", "s", "e", "y"]) {
    if (word.endsWith(ending) && word.length - ending.length >= 3) return word.slice(0, -ending.length);
  }
  return word;
}
