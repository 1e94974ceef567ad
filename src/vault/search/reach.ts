import type { IndexState, SegmentRange } from "../index-store.ts";
import type { Segment } from "../segments/segment.ts";
import type { SegmentCache } from "../segments/segment-cache.ts";

/** The live part of the index inside a boundary, in memory. */
export interface Reach {
  /** Keys of the scopes that have documents. */
  readonly scopes: readonly number[];
  readonly segments: readonly Segment[];
}

export async function loadReach(state: IndexState, cache: SegmentCache, range: SegmentRange): Promise<Reach> {
  const places = await state.segments(range);
  const segments = await cache.load(
    state,
    places.map(({ id }) => id),
  );
  return { scopes: [...new Set(places.map(({ scopeId }) => scopeId))], segments };
}
