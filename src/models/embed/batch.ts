/** A text to be embedded, with its index in the caller's list. */
export interface BatchText {
  readonly index: number;
  /** Well-formed, without its prefix. */
  readonly text: string;
}

/**
 * The maximum number of UTF-8 bytes of text in one request. OpenAI accepts 300,000 tokens, and every token has at
 * least one byte.
 */
const MOST_BYTES = 256_000;
/** The maximum number of UTF-16 code units in one text: more than any model's window, and at most 192 kB. */
const LONGEST_TEXT = 64_000;
/**
 * The lengths in UTF-16 code units to which a refused text is cut, in turn. The beginning is kept, because it
 * contains titles and headings.
 */
const RUNGS: readonly number[] = [8_000, 2_000, 500];

/**
 * Trims surrounding white space, so that no cut leaves only white space. Replaces lone surrogates, because they would
 * make some servers reject the whole request.
 */
export function pieceOf(text: string, index: number): BatchText {
  return { index, text: text.trim().slice(0, LONGEST_TEXT).toWellFormed() };
}

/** The pieces of the next request, at least one, starting at index `from`. */
export function nextBatch(
  pieces: readonly BatchText[],
  from: number,
  mostTexts: number,
  prefix: string,
): readonly BatchText[] {
  let end = from;
  let bytes = 0;
  while (end < pieces.length && end - from < mostTexts) {
    bytes += Buffer.byteLength(prefix) + Buffer.byteLength(pieces[end]?.text ?? "");
    if (bytes > MOST_BYTES && end > from) break;
    end++;
  }
  return pieces.slice(from, end);
}

/** The text cut to the next length; undefined if it cannot be shortened further. */
export function shorter({ index, text }: BatchText): BatchText | undefined {
  const length = RUNGS.find((rung) => rung < text.length);
  return length === undefined ? undefined : { index, text: text.slice(0, length).toWellFormed() };
}
