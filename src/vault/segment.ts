/**
 * A segment: the keyword index of some passages of one scope, in one piece of bytes that never changes. Adding a document
 * adds a segment, merging makes one of several, deleting makes one anew without the document: what a segment says is
 * always exactly what is in it, and a copy in memory never goes stale.
 *
 * Layout, little-endian, each part aligned to its numbers:
 * ```
 * u32 version  u32 passages  u32 terms  u32 postings  f64 words
 * f64[passages]   keys of the passages, ascending
 * f64[terms]      terms (53-bit hashes), ascending
 * u32[terms + 1]  where each term's postings begin
 * u16[passages]   lengths in words
 * u16[postings]   passage (its place among the keys)
 * u8[postings]    weighted frequency of the term in it, 255 at most
 * ```
 */
const VERSION = 1;
const HEADER_BYTES = 24;
const LONGEST = 0xffff;
const MOST_FREQUENT = 0xff;

/** Passages in a segment at most: bounds what a merge or a deletion rewrites at once (about a megabyte). */
export const SEGMENT_LIMIT = 2_048;

/** One passage before it is in a segment. */
export interface PassageTerms {
  readonly key: number;
  /** Words, title and headings included. */
  readonly length: number;
  /** Weighted frequency of each term. */
  readonly terms: ReadonlyMap<number, number>;
}

export class Segment {
  readonly keys: Float64Array;
  readonly terms: Float64Array;
  readonly offsets: Uint32Array;
  readonly lengths: Uint16Array;
  readonly passages: Uint16Array;
  readonly frequencies: Uint8Array;
  /** Of all passages together. */
  readonly words: number;
  readonly byteLength: number;

  /** @throws Error for bytes that are no segment: a fault of the program or of the disk */
  constructor(bytes: Uint8Array) {
    const aligned = bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
    const { buffer, byteOffset } = aligned;
    const [version, passages = 0, terms = 0, postings = 0] = new Uint32Array(buffer, byteOffset, 4);
    const sizes = sizesOf(passages, terms, postings);
    if (version !== VERSION || aligned.byteLength !== sizes.end) throw new Error("not an index segment");
    this.words = new Float64Array(buffer, byteOffset + 16, 1)[0] ?? 0;
    this.keys = new Float64Array(buffer, byteOffset + HEADER_BYTES, passages);
    this.terms = new Float64Array(buffer, byteOffset + sizes.terms, terms);
    this.offsets = new Uint32Array(buffer, byteOffset + sizes.offsets, terms + 1);
    this.lengths = new Uint16Array(buffer, byteOffset + sizes.lengths, passages);
    this.passages = new Uint16Array(buffer, byteOffset + sizes.passages, postings);
    this.frequencies = new Uint8Array(buffer, byteOffset + sizes.frequencies, postings);
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

  /** How many passages hold the term. */
  count(term: number): number {
    const at = this.find(term);
    return at < 0 ? 0 : (this.offsets[at + 1] as number) - (this.offsets[at] as number);
  }
}

function sizesOf(passages: number, terms: number, postings: number) {
  const atTerms = HEADER_BYTES + 8 * passages;
  const offsets = atTerms + 8 * terms;
  const lengths = offsets + 4 * (terms + 1);
  const inSegment = lengths + 2 * passages;
  const frequencies = inSegment + 2 * postings;
  return { terms: atTerms, offsets, lengths, passages: inSegment, frequencies, end: frequencies + postings };
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
  const writer = new SegmentWriter(passages.length, terms.length, count);
  for (const { key, length } of passages) writer.passage(key, length);
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
  const writer = new SegmentWriter(kept.length, terms.length, postings);
  for (const { key, length } of kept) writer.passage(key, length);
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

  constructor(passages: number, terms: number, postings: number) {
    if (passages > SEGMENT_LIMIT) throw new RangeError("too many passages for one segment");
    this.bytes = new Uint8Array(sizesOf(passages, terms, postings).end);
    new Uint32Array(this.bytes.buffer, 0, 4).set([VERSION, passages, terms, postings]);
    this.#segment = new Segment(this.bytes);
    this.#words = new Float64Array(this.bytes.buffer, 16, 1);
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
