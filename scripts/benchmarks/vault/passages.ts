/**
 * Many passages that read like real ones, the same in every run. They recombine sentences of the collections, so
 * their words are as frequent, as long and as close together as in real text. Without a collection, the sentences
 * consist of made-up words whose frequencies follow Zipf's law.
 */
import { collectionsIn, readCollection } from "./collections.ts";
import { Random } from "./random.ts";

/** The number of scopes that a passage can be in. */
export const SCOPES = 100;
const LEAST_WORDS = 112;
const MOST_WORDS = 130;
const QUERY_WORDS = { least: 8, most: 14 } as const;
const TITLE_WORDS = 7;
const SENTENCE_WORDS = { least: 5, most: 30 } as const;

const MADE_UP_WORDS = 20_000;
const MADE_UP_SENTENCES = 40_000;
const SYLLABLES =
  "ba be ca co de di en er fi ga ha in ko la le mi na no or pe ra re si ta te to un ve vi wa".split(" ");

export interface Passage {
  readonly title: string;
  readonly text: string;
  readonly scope: string;
}

export function scopeName(index: number): string {
  return `team-${String(index).padStart(3, "0")}`;
}

/** Passages and questions, each derived only from its number. */
export class Passages {
  readonly #sentences: readonly (readonly string[])[];
  /** What people asked about the collections. */
  readonly #asked: readonly string[];

  private constructor(sentences: readonly (readonly string[])[], asked: readonly string[]) {
    this.#sentences = sentences;
    this.#asked = asked;
  }

  /** @param folder the folder of collections; null if there are none */
  static of(folder: string | null): Passages {
    const collections = folder === null ? [] : collectionsIn(folder).map(readCollection);
    if (collections.length === 0) return new Passages(madeUpSentences(), []);
    const sentences = collections.flatMap(({ documents }) =>
      documents.flatMap(({ text }) => sentencesOf(text)),
    );
    const asked = collections.flatMap(({ queries }) => queries.map(({ text }) => text));
    return new Passages(sentences, asked.filter(hasQueryLength));
  }

  /** About 120 words, so that any sensible way of splitting leaves it as one passage. */
  passage(index: number): Passage {
    const random = new Random(`passage ${index}`);
    const words: string[] = [];
    while (words.length < LEAST_WORDS) {
      words.push(...random.pick(this.#sentences).slice(0, MOST_WORDS - words.length));
    }
    const title = random.pick(this.#sentences).slice(0, TITLE_WORDS).join(" ");
    return { title, text: words.join(" "), scope: scopeName(index % SCOPES) };
  }

  /** 8 to 14 words: alternately a person's question, if one of that length exists, and part of a sentence. */
  query(index: number): string {
    const random = new Random(`query ${index}`);
    if (index % 2 === 0 && this.#asked.length > 0) return random.pick(this.#asked);
    for (;;) {
      const sentence = random.pick(this.#sentences);
      if (sentence.length < QUERY_WORDS.least) continue;
      const length = Math.min(
        sentence.length,
        QUERY_WORDS.least + random.below(QUERY_WORDS.most - QUERY_WORDS.least + 1),
      );
      const start = random.below(sentence.length - length + 1);
      return sentence.slice(start, start + length).join(" ");
    }
  }
}

function hasQueryLength(text: string): boolean {
  const { length } = text.split(/\s+/);
  return length >= QUERY_WORDS.least && length <= QUERY_WORDS.most;
}

function sentencesOf(text: string): string[][] {
  return text
    .split(/(?<=[.!?])\s+/)
    .map((sentence) => sentence.split(/\s+/).filter((word) => word !== ""))
    .filter(({ length }) => length >= SENTENCE_WORDS.least && length <= SENTENCE_WORDS.most);
}

function madeUpSentences(): string[][] {
  const random = new Random("made-up sentences");
  const words = Array.from({ length: MADE_UP_WORDS }, (_, rank) => madeUpWord(rank, random));
  // By Zipf's law, the word of rank r occurs 1/r times as often as the first. This inverts that distribution.
  const word = () => words[Math.floor(MADE_UP_WORDS ** random.next()) - 1] ?? "";
  return Array.from({ length: MADE_UP_SENTENCES }, () =>
    Array.from({ length: SENTENCE_WORDS.least + random.below(20) }, word),
  );
}

/** The more frequent a word, the shorter, as in any language. */
function madeUpWord(rank: number, random: Random): string {
  const syllables = 1 + Math.floor(Math.log10(rank + 1) * 0.9);
  return Array.from({ length: syllables + random.below(2) }, () => random.pick(SYLLABLES)).join("");
}
