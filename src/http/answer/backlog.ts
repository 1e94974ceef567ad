import type { ReadableStreamDefaultReader } from "node:stream/web";
import type { FairPlace } from "../../limits/fair-places.ts";

/** A place for a part of an answer. */
type AnswerPlace = Pick<FairPlace<number>, "release" | "endsBy">;

interface UnreadChunk {
  readonly bytes: Uint8Array;
  readonly place: AnswerPlace | null;
}

export interface BacklogParts {
  /** Number of bytes of unread chunks that need no reserved memory. */
  readonly free: number;
  /** Reserves memory for the bytes of a chunk until the chunk is read. */
  readonly hold: (bytes: number) => AnswerPlace;
  /** Called when reserved memory is lost. MUST lead to `stop`. */
  readonly lost: () => void;
}

/**
 * Data that a stream's source has sent and its client has not read. The source is read as fast as it sends, since it
 * would otherwise keep any number of answers in its own queue, where nothing counts them.
 */
export class Backlog {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #parts: BacklogParts;
  /** Unread chunks, in order. */
  readonly #unread = new Set<UnreadChunk>();
  #unreadBytes = 0;
  #end: { readonly error?: unknown } | null = null;
  #wake = () => {};

  constructor(source: ReadableStream<Uint8Array>, parts: BacklogParts) {
    this.#reader = source.getReader();
    this.#parts = parts;
    void this.#receive();
  }

  /** The chunks in order. MUST be read only once: to the end, or until `stop`. */
  async *chunks(): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const [next] = this.#unread;
      if (next) {
        yield next.bytes;
        this.#remove(next);
      } else if (this.#end) {
        if ("error" in this.#end) throw this.#end.error;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  /** Ends the source and releases all places. */
  stop(): void {
    this.#end ??= {};
    for (const chunk of this.#unread) this.#remove(chunk);
    // The source reports its own failures to the read that is pending.
    this.#reader.cancel().catch(() => {});
    this.#wake();
  }

  async #receive(): Promise<void> {
    try {
      for (let next = await this.#reader.read(); !next.done; next = await this.#reader.read()) {
        if (this.#end) return;
        this.#add(next.value);
      }
      this.#end ??= {};
    } catch (error) {
      this.#end ??= { error };
    }
    this.#wake();
  }

  #add(bytes: Uint8Array): void {
    const { free, hold, lost } = this.#parts;
    this.#unreadBytes += bytes.length;
    const place = this.#unreadBytes > free ? hold(bytes.length) : null;
    if (this.#end) {
      // The place was taken from this stream's own older chunks, which ended it.
      place?.release();
      return;
    }
    this.#unread.add({ bytes, place });
    place?.endsBy(lost);
    this.#wake();
  }

  #remove(chunk: UnreadChunk): void {
    if (!this.#unread.delete(chunk)) return;
    this.#unreadBytes -= chunk.bytes.length;
    chunk.place?.release();
  }
}
