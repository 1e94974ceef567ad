import type { IndexState } from "../index-store.ts";
import type { CacheReport, CacheUpdate, SharedSegment } from "../messages.ts";
import { Segment } from "./segment.ts";

type SegmentSource = Pick<IndexState, "readSegments">;

/**
 * The segments that a thread has in memory, which it shares with other threads. Contains each segment that it has
 * loaded until `change` drops it: the main thread decides (`segment-sharing.ts`).
 */
export class SegmentCache {
  readonly #segments = new Map<number, Segment>();
  #byteLength = 0;
  #used: number[] = [];
  #read: SharedSegment[] = [];

  /** Memory used by all segments, in bytes. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** The segments with these keys, in order. Those that it lacks are read from the store. */
  async load(state: SegmentSource, ids: readonly number[]): Promise<Segment[]> {
    const segments = ids.map((id) => this.#segments.get(id));
    const missing = ids.filter((_, at) => segments[at] === undefined);
    const read = new Map<number, Segment>();
    if (missing.length > 0)
      await state.readSegments(missing, (id, bytes) => read.set(id, this.#add(id, bytes)));
    for (const id of ids) this.#used.push(id);
    return segments.map((segment, at) => {
      // Not from the cache: it may have been told to drop one in the meantime.
      const found = segment ?? read.get(ids[at] as number);
      if (!found) throw new Error("an index segment was not read");
      return found;
    });
  }

  /** What happened since the last report. */
  report(): CacheReport {
    const report = { used: Float64Array.from(this.#used), read: this.#read };
    this.#used = [];
    this.#read = [];
    return report;
  }

  change({ dropped, added }: CacheUpdate): void {
    for (const id of dropped) {
      this.#byteLength -= this.#segments.get(id)?.byteLength ?? 0;
      this.#segments.delete(id);
    }
    for (const { id, buffer } of added) this.#put(id, buffer);
  }

  #add(id: number, bytes: Uint8Array): Segment {
    const buffer = new SharedArrayBuffer(bytes.byteLength);
    new Uint8Array(buffer).set(bytes);
    this.#read.push({ id, buffer });
    return this.#put(id, buffer);
  }

  #put(id: number, buffer: SharedArrayBuffer): Segment {
    const segment = new Segment(new Uint8Array(buffer));
    this.#byteLength += segment.byteLength - (this.#segments.get(id)?.byteLength ?? 0);
    this.#segments.set(id, segment);
    return segment;
  }
}
