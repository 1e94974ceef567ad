import type { SegmentChange } from "../messages.ts";
import { documentOf } from "../rows/keys.ts";
import { SEGMENT_LIMIT, type Segment } from "./segment.ts";
import { mergeSegments } from "./segment-writer.ts";

/** Segments of similar size that a scope may have before they are merged. */
export const SEGMENTS_OF_A_SIZE = 8;

const NO_CHANGE: SegmentChange = { removed: [], added: [] };

/** A segment of the scope that is to change. */
export interface LiveSegment {
  readonly id: number;
  readonly segment: Segment;
}

/** A scope's segments without one document: those that contained it, rebuilt. */
export function withoutDocument(live: readonly LiveSegment[], document: number): SegmentChange {
  const removed: number[] = [];
  const added: Uint8Array[] = [];
  for (const { id, segment } of live) {
    if (!segment.keys.some((key) => documentOf(key) === document)) continue;
    removed.push(id);
    const rest = mergeSegments([segment], (key) => documentOf(key) === document);
    if (rest) added.push(rest);
  }
  return change(removed, added);
}

/**
 * The next merge that a scope needs, or none. While documents arrive, sizes grow in steps of eight, so each passage
 * is merged three or four times in all. Once the scope is quiet (`isQuiet`), everything that fits is merged into one.
 */
export function nextMerge(live: readonly LiveSegment[], isQuiet: boolean): SegmentChange {
  const small = live.filter(({ segment }) => segment.keys.length * 2 <= SEGMENT_LIMIT);
  if (isQuiet) {
    return mergeOf(
      fitting(small.sort((left, right) => left.segment.keys.length - right.segment.keys.length)),
    );
  }
  const sizes = new Map<number, LiveSegment[]>();
  for (const each of small) {
    const passages = each.segment.keys.length;
    const size = Math.floor(Math.log(passages) / Math.log(SEGMENTS_OF_A_SIZE));
    const group = sizes.get(size);
    if (group) group.push(each);
    else sizes.set(size, [each]);
  }
  for (const group of sizes.values()) {
    if (group.length >= SEGMENTS_OF_A_SIZE) return mergeOf(fitting(group));
  }
  return NO_CHANGE;
}

function mergeOf(taken: readonly LiveSegment[]): SegmentChange {
  if (taken.length < 2) return NO_CHANGE;
  const merged = mergeSegments(taken.map(({ segment }) => segment));
  return change(
    taken.map(({ id }) => id),
    merged ? [merged] : [],
  );
}

function fitting(group: readonly LiveSegment[]): LiveSegment[] {
  const taken: LiveSegment[] = [];
  let passages = 0;
  for (const live of group) {
    passages += live.segment.keys.length;
    if (passages > SEGMENT_LIMIT) break;
    taken.push(live);
  }
  return taken;
}

function change(removed: readonly number[], added: readonly Uint8Array[]): SegmentChange {
  return { removed, added: added.map((bytes) => ({ passages: passagesIn(bytes), bytes })) };
}

function passagesIn(bytes: Uint8Array): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
}

/** The `builtin/lexical` vectors stored in the scope's segments; undefined for passages that are in none. */
export function lexicalVectors(
  live: readonly LiveSegment[],
  keys: readonly number[],
): (Float32Array | null | undefined)[] {
  return keys.map((key) => {
    for (const { segment } of live) {
      const place = segment.placeOf(key);
      if (place >= 0) return segment.vector(place);
    }
    return undefined;
  });
}
