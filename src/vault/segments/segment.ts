import { estimatePlace, placeNear, placeOf } from "./sorted.ts";

/**
 * A segment: the index of some passages of one scope, as a single immutable sequence of bytes. Adding a document adds
 * a segment, merging combines several, and deleting rebuilds one without the document. So a segment always describes
 * exactly its content, and a cached copy never becomes stale.
 *
 * Layout, little-endian, each part aligned to its element size:
 * ```
 * u32 version  u32 passages  u32 terms  u32 postings  u32 dimensions  u32 (none)  f64 words
 * f64[passages]   keys of the passages, ascending
 * f64[terms]      terms (53-bit hashes), ascending
 * u32[terms + 1]  index of each term's first posting
 * f32[passages]   scale of each vector's numbers; 0 for a passage without a vector
 * u16[passages]   lengths in words
 * u16[postings]   index of the passage
 * u8[postings]    weighted frequency of the term in it, at most 255
 * i8[passages * dimensions]  vectors of `builtin/lexical`, each number in 1/127 of the vector's largest
 * ```
 * The vectors are a copy for scanning; the exact ones are in sqlite-vec's table. Reading 50 single vectors from there
 * took 0.5 ms, here 0.01; comparing 100,000 took 95 ms there, here 13.
 */
export const VERSION = 1;
const HEADER_BYTES = 32;
export const WORDS_AT = 24;

/**
 * Maximum number of passages in a segment. Bounds what a merge or deletion rewrites at a time, to about a megabyte.
 */
export const SEGMENT_LIMIT = 1_024;

/** A passage to be indexed. */
export interface PassageTerms {
  readonly key: number;
  /** Number of words, including title and headings. */
  readonly length: number;
  /** Weighted frequency of each term. */
  readonly terms: ReadonlyMap<number, number>;
  /** A unit vector; all have the same dimension. Null or absent for a passage without words. */
  readonly vector?: Float32Array | null;
}

export class Segment {
  readonly keys: Float64Array;
  readonly terms: Float64Array;
  readonly offsets: Uint32Array;
  readonly lengths: Uint16Array;
  readonly passages: Uint16Array;
  readonly frequencies: Uint8Array;
  readonly dimensions: number;
  readonly scales: Float32Array;
  readonly vectors: Int8Array;
  /** Total words of all passages. */
  readonly words: number;
  readonly byteLength: number;

  /** @throws Error for invalid bytes: a fault of the program or the disk */
  constructor(bytes: Uint8Array) {
    const aligned = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
    const { buffer, byteOffset } = aligned;
    const [version, passages = 0, terms = 0, postings = 0, dimensions = 0] = new Uint32Array(
      buffer,
      byteOffset,
      5,
    );
    const sizes = sizesOf(passages, terms, postings, dimensions);
    if (version !== VERSION || aligned.byteLength !== sizes.end) throw new Error("not an index segment");
    this.dimensions = dimensions;
    this.words = new Float64Array(buffer, byteOffset + WORDS_AT, 1)[0] ?? 0;
    this.keys = new Float64Array(buffer, byteOffset + HEADER_BYTES, passages);
    this.terms = new Float64Array(buffer, byteOffset + sizes.terms, terms);
    this.offsets = new Uint32Array(buffer, byteOffset + sizes.offsets, terms + 1);
    this.scales = new Float32Array(buffer, byteOffset + sizes.scales, passages);
    this.lengths = new Uint16Array(buffer, byteOffset + sizes.lengths, passages);
    this.passages = new Uint16Array(buffer, byteOffset + sizes.passages, postings);
    this.frequencies = new Uint8Array(buffer, byteOffset + sizes.frequencies, postings);
    this.vectors = new Int8Array(buffer, byteOffset + sizes.vectors, passages * dimensions);
    this.byteLength = aligned.byteLength;
  }

  /** The term's index, or -1. */
  find(term: number): number {
    return placeNear(this.terms, term, estimatePlace(this.terms, term));
  }

  /** The number of passages that contain the term at an index. */
  passagesWith(at: number): number {
    return (this.offsets[at + 1] as number) - (this.offsets[at] as number);
  }

  /** The passage's index, or -1. */
  placeOf(key: number): number {
    return placeOf(this.keys, key);
  }

  /**
   * Cosine similarity of the passage at an index with a unit vector, accurate to about 1/100 because the copy is
   * quantised. Four parallel sums take half the time of one.
   */
  similarity(place: number, vector: Float32Array): number {
    const { vectors, dimensions } = this;
    const from = place * dimensions;
    let first = 0;
    let second = 0;
    let third = 0;
    let fourth = 0;
    for (let at = 0; at < dimensions; at += 4) {
      first += (vectors[from + at] as number) * (vector[at] as number);
      second += (vectors[from + at + 1] as number) * (vector[at + 1] as number);
      third += (vectors[from + at + 2] as number) * (vector[at + 2] as number);
      fourth += (vectors[from + at + 3] as number) * (vector[at + 3] as number);
    }
    return (first + second + third + fourth) * (this.scales[place] as number);
  }

  /** A passage's vector by index, normalised to unit length; null if it has none. */
  vector(place: number): Float32Array | null {
    if (this.scales[place] === 0) return null;
    const from = place * this.dimensions;
    const rounded = this.vectors.subarray(from, from + this.dimensions);
    const length = Math.hypot(...rounded);
    return Float32Array.from(rounded, (number) => number / length);
  }

  /**
   * Adds to `counts` the number of passages containing each of these terms, which MUST be ascending. Absent terms are
   * not added.
   */
  countAll(wanted: Float64Array, counts: Map<number, number>): void {
    const { terms } = this;
    let from = 0;
    for (const term of wanted) {
      // Galloping search: the next term is seldom far from the last.
      let step = 1;
      while (from + step < terms.length && (terms[from + step] as number) < term) step *= 2;
      let low = from + (step >> 1);
      let high = Math.min(from + step, terms.length - 1);
      while (low <= high) {
        const middle = (low + high) >>> 1;
        if ((terms[middle] as number) < term) low = middle + 1;
        else high = middle - 1;
      }
      from = low;
      if (from >= terms.length) return;
      if (terms[from] !== term) continue;
      counts.set(term, (counts.get(term) ?? 0) + this.passagesWith(from));
    }
  }
}

export function sizesOf(passages: number, terms: number, postings: number, dimensions: number) {
  const atTerms = HEADER_BYTES + 8 * passages;
  const offsets = atTerms + 8 * terms;
  const scales = offsets + 4 * (terms + 1);
  const lengths = scales + 4 * passages;
  const inSegment = lengths + 2 * passages;
  const frequencies = inSegment + 2 * postings;
  const vectors = frequencies + postings;
  const end = vectors + passages * dimensions;
  return { terms: atTerms, offsets, scales, lengths, passages: inSegment, frequencies, vectors, end };
}
