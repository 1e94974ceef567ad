import { type JsonExcess, type JsonLimits, JsonMeter } from "./json-limits.ts";

/** Two lengths and their checksum: the frame's and its headers', four bytes each. */
const PRELUDE_BYTES = 12;
/** The checksum at the end. */
const TRAILER_BYTES = 4;
/** Size in bytes of the two lengths. */
const LENGTHS_BYTES = 8;

export interface FrameMeasure {
  /** The greatest length in bytes that any frame claims to have, whether or not it has arrived. */
  readonly bytes: number;
  /** The first limit that a frame's JSON exceeds. */
  readonly excess: JsonExcess | null;
  /** Frames that end there. */
  readonly frames: number;
}

/**
 * Measures the frames of an `application/vnd.amazon.eventstream` by its bytes: the length that each claims, and the
 * depth and width of the JSON in it. Checksums are the reader's concern. The format:
 * https://smithy.io/2.0/aws/amazon-eventstream.html
 */
export class FrameMeter {
  readonly #json: JsonMeter;
  /** Size in bytes of the frame so far. */
  #at = 0;
  #length = 0;
  #headers = 0;

  /** @param json the limits of one frame's payload */
  constructor(json?: JsonLimits) {
    this.#json = new JsonMeter(json);
  }

  /** Measures the next bytes. */
  add(part: Uint8Array): FrameMeasure {
    let most = 0;
    let excess: JsonExcess | null = null;
    let frames = 0;
    let from = 0;
    while (from < part.length) {
      if (this.#at < LENGTHS_BYTES) {
        this.#readLength(part[from++] ?? 0);
        if (this.#at === LENGTHS_BYTES) most = Math.max(most, this.#length);
        continue;
      }
      const payload = PRELUDE_BYTES + this.#headers;
      const trailer = Math.max(payload, this.#length - TRAILER_BYTES);
      const end = Math.max(trailer, this.#length, PRELUDE_BYTES + TRAILER_BYTES);
      const next = this.#at < payload ? payload : this.#at < trailer ? trailer : end;
      const to = Math.min(part.length, from + next - this.#at);
      if (next === trailer && this.#at >= payload) excess ??= this.#json.add(part.subarray(from, to));
      this.#at += to - from;
      from = to;
      if (this.#at < end) continue;
      this.#at = 0;
      this.#length = 0;
      this.#headers = 0;
      this.#json.reset();
      frames++;
    }
    return { bytes: most, excess, frames };
  }

  #readLength(byte: number): void {
    if (this.#at < LENGTHS_BYTES / 2) this.#length = this.#length * 256 + byte;
    else this.#headers = this.#headers * 256 + byte;
    this.#at++;
  }
}
