import { stemmer } from "stemmer";
import { isStopWord } from "../../../../vault/terms/stop-words.ts";

/** A part of the text, and whether it matches the query. */
export interface MarkedText {
  readonly text: string;
  readonly isMarked: boolean;
}

/** A query's words in the form that a search compares. */
export interface QuestionWords {
  /** Stems of space-separated words. */
  readonly stems: ReadonlySet<string>;
  /** For scripts without spaces: characters and pairs of characters. */
  readonly signs: ReadonlySet<string>;
}

const RUN = /[\p{L}\p{N}\p{M}]+/gu;
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const MARK = /\p{M}/gu;
const LONGEST_WORD = 200;

/**
 * The words that a search for `question` uses: without stop words unless there are no others, and with the server's
 * corrections. The same as in `vault/terms/words.ts`.
 */
export function wordsOf(
  question: string,
  corrected: Readonly<Record<string, readonly string[]>>,
): QuestionWords {
  const stems = new Set<string>();
  const signs = new Set<string>();
  const words: string[] = [];
  for (const [run] of question.matchAll(RUN)) {
    for (const part of partsOf(run)) {
      if (part.isUnspaced) for (const sign of signsOf(part.characters)) signs.add(sign);
      else words.push(part.characters.join(""));
    }
  }
  const telling = words.filter((word) => !isStopWord(word));
  const meant = telling.flatMap((word) => [word, ...(corrected[word] ?? [])]);
  for (const word of meant.length > 0 || signs.size > 0 ? meant : words) stems.add(stemmer(word));
  return { stems, signs };
}

/** Splits text into pieces, with matches marked. They can be joined to form the text again. */
export function mark(text: string, words: QuestionWords): MarkedText[] {
  const pieces: MarkedText[] = [];
  let at = 0;
  for (const { start, end } of marksIn(text, words)) {
    if (start > at) pieces.push({ text: text.slice(at, start), isMarked: false });
    pieces.push({ text: text.slice(start, end), isMarked: true });
    at = end;
  }
  if (at < text.length) pieces.push({ text: text.slice(at), isMarked: false });
  return pieces;
}

interface TextRange {
  readonly start: number;
  readonly end: number;
}

function* marksIn(text: string, { stems, signs }: QuestionWords): Generator<TextRange> {
  for (const match of text.matchAll(RUN)) {
    for (const { isUnspaced, characters, starts, end } of partsOf(match[0], match.index)) {
      const start = starts[0] ?? match.index;
      if (!isUnspaced) {
        if (stems.has(stemmer(characters.join("")))) yield { start, end };
        continue;
      }
      yield* signMarks(characters, [...starts, end], signs);
    }
  }
}

/** Pairs of characters that the query contains; single characters if it has no longer runs. */
function* signMarks(
  characters: readonly string[],
  bounds: readonly number[],
  signs: ReadonlySet<string>,
): Generator<TextRange> {
  const isMarked = characters.map(
    (character, index) =>
      signs.has(character) ||
      signs.has(character + (characters[index + 1] ?? "")) ||
      (index > 0 && signs.has((characters[index - 1] ?? "") + character)),
  );
  for (let from = 0; from < characters.length; from++) {
    if (!isMarked[from]) continue;
    let to = from;
    while (isMarked[to + 1]) to++;
    yield { start: bounds[from] ?? 0, end: bounds[to + 1] ?? 0 };
    from = to;
  }
}

interface WordRun {
  readonly isUnspaced: boolean;
  /** Folded: lower case, without accents. */
  readonly characters: string[];
  /** Position of each character. */
  readonly starts: number[];
  end: number;
}

/** Splits a run of letters where the script changes between spaced and unspaced. */
function partsOf(run: string, offset = 0): readonly WordRun[] {
  const parts: WordRun[] = [];
  let at = offset;
  for (const character of run) {
    const start = at;
    at += character.length;
    const folded = fold(character);
    const last = parts.at(-1);
    // A combining accent belongs to the preceding letter.
    const isUnspaced = folded === "" ? (last?.isUnspaced ?? false) : UNSPACED.test(folded);
    if (last?.isUnspaced === isUnspaced) {
      last.end = at;
      if (folded === "") continue;
      last.characters.push(folded);
      last.starts.push(start);
    } else parts.push({ isUnspaced, characters: [folded], starts: [start], end: at });
  }
  return parts.filter(({ isUnspaced, characters }) => isUnspaced || characters.length <= LONGEST_WORD);
}

function fold(character: string): string {
  if (character < "\x80") return character.toLowerCase();
  return character.toLowerCase().normalize("NFKD").toLowerCase().replace(MARK, "").normalize("NFC");
}

function signsOf(characters: readonly string[]): readonly string[] {
  if (characters.length === 1) return characters;
  return characters.slice(1).map((character, index) => (characters[index] ?? "") + character);
}
