import { type PassageTerms, SEGMENT_LIMIT, Segment, sizesOf, VERSION, WORDS_AT } from "./segment.ts";

const INT8 = 127;
const MOST_FREQUENT = 0xff;
const LONGEST = 0xffff;
/** Passages MUST be in ascending order of their keys, at most `SEGMENT_LIMIT`. */
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
 * Merges segments into one, without the passages in `drop`; null if none are left. The keys of different segments may
 * interleave.
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

/** The remaining terms, ascending, and their total number of postings. */
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

  /** Writes the next passage's vector. */
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
