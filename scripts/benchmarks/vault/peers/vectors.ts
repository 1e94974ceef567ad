/** The vectors of `builtin/lexical`, exactly those that Gatehouse's vault makes of these passages and questions. */
import {
  passageVector as formula,
  LEXICAL_DIMENSIONS,
  lexicalVector,
} from "../../../../src/vault/terms/lexical.ts";
import { wordsOf } from "../../../../src/vault/terms/words.ts";
import type { Passage } from "../passages.ts";

export const DIMENSIONS = LEXICAL_DIMENSIONS;

export function passageVector({ title, text }: Passage): Float32Array {
  return there(formula({ title: wordsOf(title), headings: [], text: wordsOf(text) }));
}

export function questionVector(text: string): Float32Array {
  return there(lexicalVector(wordsOf(text)));
}

function there(vector: Float32Array | null): Float32Array {
  if (vector === null) throw new Error("a text without words");
  return vector;
}

/** Numbers of the rows nearest to the query by cosine, best first: the truth with which peers are compared. */
export function nearest(
  rows: Float32Array,
  query: Float32Array,
  k: number,
  isAllowed: (row: number) => boolean,
): number[] {
  const best: { row: number; similarity: number }[] = [];
  for (let row = 0; row * DIMENSIONS < rows.length; row++) {
    if (!isAllowed(row)) continue;
    let similarity = 0;
    const offset = row * DIMENSIONS;
    for (let at = 0; at < DIMENSIONS; at++) similarity += (rows[offset + at] ?? 0) * (query[at] ?? 0);
    if (best.length === k && similarity <= (best[k - 1]?.similarity ?? 0)) continue;
    const place = best.findIndex((other) => other.similarity < similarity);
    best.splice(place === -1 ? best.length : place, 0, { row, similarity });
    if (best.length > k) best.pop();
  }
  return best.map(({ row }) => row);
}
