/** A text on its way, with its place in the caller's list. */
export interface Piece {
  readonly index: number;
  /** Well-formed, without prefix. */
  readonly text: string;
}

/** UTF-8 bytes of text in one request; OpenAI takes 300,000 tokens, and no token has less than a byte. */
const MOST_BYTES = 256_000;
/** UTF-16 units of one text: more than any model's window, and 192 kB at most. */
const LONGEST_TEXT = 64_000;
/** UTF-16 units a refused text is cut to, one after the other. The beginning is kept: titles and headings stand there. */
const RUNGS: readonly number[] = [8_000, 2_000, 500];

/**
 * White space around it is left out, so that no cut leaves white space alone. A lone half of a surrogate pair would make
 * some servers refuse the whole request.
 */
export function pieceOf(text: string, index: number): Piece {
  return { index, text: text.trim().slice(0, LONGEST_TEXT).toWellFormed() };
}

/** The next request's pieces, one at least, from place `from`. */
export function nextBatch(
  pieces: readonly Piece[],
  from: number,
  mostTexts: number,
  prefix: string,
): readonly Piece[] {
  let end = from;
  let bytes = 0;
  while (end < pieces.length && end - from < mostTexts) {
    bytes += Buffer.byteLength(prefix) + Buffer.byteLength(pieces[end]?.text ?? "");
    if (bytes > MOST_BYTES && end > from) break;
    end++;
  }
  return pieces.slice(from, end);
}

/** The text cut to the next rung; undefined when it cannot be made shorter. */
export function shorter({ index, text }: Piece): Piece | undefined {
  const length = RUNGS.find((rung) => rung < text.length);
  return length === undefined ? undefined : { index, text: text.slice(0, length).toWellFormed() };
}
