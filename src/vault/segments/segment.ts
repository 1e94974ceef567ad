/**
 * A segment: the index of some passages of one scope, in one piece of bytes that never changes. Adding a document
 * adds a segment, merging makes one of several, deleting makes one anew without the document: what a segment says is
 * always exactly what is in it, and a copy in memory never goes stale.
 *
 * Layout, little-endian, each part aligned to its numbers:
 * ```
 * u32 version  u32 passages  u32 terms  u32 postings  u32 dimensions  u32 (none)  f64 words
 * f64[passages]   keys of the passages, ascending
 * f64[terms]      terms (53-bit hashes), ascending
 * u32[terms + 1]  where each term's postings begin
 * f32[passages]   what a vector's numbers are to be multiplied with; 0 for a passage that has none
 * u16[passages]   lengths in words
 * u16[postings]   passage (its place among the keys)
 * u8[postings]    weighted frequency of the term in it, 255 at most
 * i8[passages * dimensions]  vectors of `builtin/lexical`, each number to 1/127 of the vector's largest
 * ```
 * The vectors are a copy, to be scanned: exact ones are in sqlite-vec's table. Reading 50 single vectors out of that took
 * 0.5 ms, here it takes 0.01; comparing 100,000 took 95 ms there, here 13.
 */
const VERSION = 1;
const HEADER_BYTES = 32;
const WORDS_AT = 24;
const INT8 = 127;
const LONGEST = 0xffff;
const MOST_FREQUENT = 0xff;

/** Passages in a segment at most: bounds what a merge or a deletion rewrites at once (about a megabyte). */
export const SEGMENT_LIMIT = 1_024;

/** One passage before it is in a segment. */
export interface PassageTerms {
  readonly key: number;
  /** Words, title and headings included. */
  readonly length: number;
  /** Weighted frequency of each term. */
  readonly terms: ReadonlyMap<number, number>;
  /** Of unit length, all of one dimension; null or left out for a passage without words. */
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
  /** Of all passages together. */
  readonly words: number;
  readonly byteLength: number;

  /** @throws Error for bytes that are no segment: a fault of the program or of the disk */
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

  /** The term's place, or -1. */
  find(term: number): number {
    const { terms } = this;
    let low = 0;
    let high = terms.length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const found = terms[middle] as number;
      if (found === term) return middle;
      if (found < term) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /**
   * Cosine similarity of a passage, by its place, with a unit vector; to about 1/100, since the copy is rounded. Four sums
   * side by side take half the time of one.
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

  /** Adds to `counts` how many passages hold each of these terms, which MUST be ascending; those that none holds stay out. */
  countAll(wanted: Float64Array, counts: Map<number, number>): void {
    const { terms, offsets } = this;
    let from = 0;
    for (const term of wanted) {
      // Galloping: the next one is seldom far from the last.
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
      const held = (offsets[from + 1] as number) - (offsets[from] as number);
      counts.set(term, (counts.get(term) ?? 0) + held);
    }
  }

  /** Whether the passage is in this segment. */
  has(key: number): boolean {
    const { keys } = this;
    let low = 0;
    let high = keys.length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const found = keys[middle] as number;
      if (found === key) return true;
      if (found < key) low = middle + 1;
      else high = middle - 1;
    }
    return false;
  }

  /** How many passages hold the term. */
  count(term: number): number {
    const at = this.find(term);
    return at < 0 ? 0 : (this.offsets[at + 1] as number) - (this.offsets[at] as number);
  }
}

function sizesOf(passages: number, terms: number, postings: number, dimensions: number) {
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

/** Passages MUST come in ascending order of their keys, `SEGMENT_LIMIT` at most. */
export function encodeSegment(passages: readonly PassageTerms[]): Uint8Array {
  const postings = new Map<number, number[]>();
  for (const [place, { terms }] of passages.entries()) {
    for (const [term, frequency] of terms) {
      const list = postings.get(term);
      if (list) list.push(place, frequency);
      else postings.set(term, [place, frequency]);
    }
  }
  const terms = Float64Array.from(postings.keys()).sort();
  let count = 0;
  for (const list of postings.values()) count += list.length / 2;
  const dimensions = passages.find(({ vector }) => vector)?.vector?.length ?? 0;
  const writer = new SegmentWriter(passages.length, terms.length, count, dimensions);
  for (const { key, length, vector } of passages) {
    if (vector) writer.vector(vector);
    writer.passage(key, length);
  }
  for (const term of terms) {
    const list = postings.get(term) ?? [];
    for (let index = 0; index < list.length; index += 2) {
      writer.posting(list[index] as number, list[index + 1] as number);
    }
    writer.endTerm(term);
  }
  return writer.bytes;
}

/**
 * One segment of several, without the passages that `drop` names; null where none is left. The segments' keys may be in
 * any order among one another.
 */
export function mergeSegments(
  segments: readonly Segment[],
  drop: (key: number) => boolean = () => false,
): Uint8Array | null {
  const kept: {
    readonly key: number;
    readonly length: number;
    readonly from: number;
    readonly place: number;
  }[] = [];
  for (const [from, { keys, lengths }] of segments.entries()) {
    for (const [place, key] of keys.entries()) {
      if (!drop(key)) kept.push({ key, length: lengths[place] as number, from, place });
    }
  }
  if (kept.length === 0) return null;
  kept.sort((left, right) => left.key - right.key);
  const places = segments.map(({ keys }) => new Int32Array(keys.length).fill(-1));
  for (const [place, passage] of kept.entries()) (places[passage.from] as Int32Array)[passage.place] = place;

  const { terms, postings } = unite(segments, places);
  const dimensions = Math.max(...segments.map((segment) => segment.dimensions));
  const writer = new SegmentWriter(kept.length, terms.length, postings, dimensions);
  for (const { key, length, from, place } of kept) {
    writer.copyVector(segments[from] as Segment, place);
    writer.passage(key, length);
  }
  for (const term of terms) {
    for (const [from, segment] of segments.entries())
      copyPostings(segment, places[from] as Int32Array, term, writer);
    writer.endTerm(term);
  }
  return writer.bytes;
}

/** The terms that are left, ascending, and how many postings they have together. */
function unite(segments: readonly Segment[], places: readonly Int32Array[]) {
  const left = new Set<number>();
  let postings = 0;
  for (const [from, { terms, offsets, passages }] of segments.entries()) {
    const moved = places[from] as Int32Array;
    for (const [index, term] of terms.entries()) {
      const end = offsets[index + 1] as number;
      for (let at = offsets[index] as number; at < end; at++) {
        if ((moved[passages[at] as number] as number) < 0) continue;
        postings += 1;
        left.add(term);
      }
    }
  }
  return { terms: Float64Array.from(left).sort(), postings };
}

function copyPostings(segment: Segment, moved: Int32Array, term: number, writer: SegmentWriter): void {
  const index = segment.find(term);
  if (index < 0) return;
  const end = segment.offsets[index + 1] as number;
  for (let at = segment.offsets[index] as number; at < end; at++) {
    const place = moved[segment.passages[at] as number] as number;
    if (place >= 0) writer.posting(place, segment.frequencies[at] as number);
  }
}

class SegmentWriter {
  readonly bytes: Uint8Array;
  readonly #segment: Segment;
  readonly #words: Float64Array;
  #passages = 0;
  #terms = 0;
  #postings = 0;

  constructor(passages: number, terms: number, postings: number, dimensions: number) {
    if (passages > SEGMENT_LIMIT) throw new RangeError("too many passages for one segment");
    if (dimensions % 4 !== 0) throw new RangeError("vectors must have a multiple of four numbers");
    this.bytes = new Uint8Array(sizesOf(passages, terms, postings, dimensions).end);
    new Uint32Array(this.bytes.buffer, 0, 5).set([VERSION, passages, terms, postings, dimensions]);
    this.#segment = new Segment(this.bytes);
    this.#words = new Float64Array(this.bytes.buffer, WORDS_AT, 1);
  }

  /** The vector of the passage that comes next. */
  vector(vector: Float32Array): void {
    const { vectors, scales, dimensions } = this.#segment;
    let largest = 0;
    for (const number of vector) largest = Math.max(largest, Math.abs(number));
    if (largest === 0) return;
    const from = this.#passages * dimensions;
    for (const [at, number] of vector.entries()) vectors[from + at] = Math.round((number / largest) * INT8);
    scales[this.#passages] = largest / INT8;
  }

  copyVector(segment: Segment, place: number): void {
    const { vectors, scales, dimensions } = this.#segment;
    if (segment.dimensions !== dimensions) return;
    const from = place * dimensions;
    vectors.set(segment.vectors.subarray(from, from + dimensions), this.#passages * dimensions);
    scales[this.#passages] = segment.scales[place] as number;
  }

  passage(key: number, length: number): void {
    this.#segment.keys[this.#passages] = key;
    this.#segment.lengths[this.#passages++] = Math.min(length, LONGEST);
    this.#words[0] = (this.#words[0] as number) + Math.min(length, LONGEST);
  }

  posting(passage: number, frequency: number): void {
    this.#segment.passages[this.#postings] = passage;
    this.#segment.frequencies[this.#postings++] = Math.min(frequency, MOST_FREQUENT);
  }

  endTerm(term: number): void {
    this.#segment.terms[this.#terms++] = term;
    this.#segment.offsets[this.#terms] = this.#postings;
  }
}
