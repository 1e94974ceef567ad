/** Bytes of a frame's length field, little-endian. */
const HEAD = 4;

/** Thrown for malformed input from another process. */
export class BrokenFrame extends Error {
  override readonly name = "BrokenFrame";
}

/** The header of a frame with a body of `length` bytes. */
export function frameHead(length: number): Uint8Array {
  const head = new Uint8Array(HEAD);
  new DataView(head.buffer).setUint32(0, length, true);
  return head;
}

/** A complete frame, for short bodies. */
export function frameOf(body: Uint8Array): Uint8Array {
  return Buffer.concat([frameHead(body.length), body]);
}

/** Reassembles frames from a stream of bytes split anywhere. */
export class FrameReader {
  readonly #most: number;
  readonly #head = new Uint8Array(HEAD);
  #headLength = 0;
  #body: Uint8Array | null = null;
  #bodyLength = 0;

  /** `most`: the largest body in bytes. */
  constructor(most: number) {
    this.#most = most;
  }

  /** The bodies completed by these bytes, in order. @throws BrokenFrame */
  *push(bytes: Uint8Array): Generator<Uint8Array> {
    for (let at = 0; at < bytes.length; ) {
      if (this.#body === null) {
        const part = bytes.subarray(at, at + HEAD - this.#headLength);
        this.#head.set(part, this.#headLength);
        this.#headLength += part.length;
        at += part.length;
        if (this.#headLength < HEAD) return;
        this.#begin();
      }
      const body = this.#body;
      if (body === null) return;
      const part = bytes.subarray(at, at + body.length - this.#bodyLength);
      body.set(part, this.#bodyLength);
      this.#bodyLength += part.length;
      at += part.length;
      if (this.#bodyLength < body.length) return;
      this.#body = null;
      yield body;
    }
  }

  #begin(): void {
    const length = new DataView(this.#head.buffer).getUint32(0, true);
    if (length > this.#most) throw new BrokenFrame(`a frame of ${length} bytes`);
    this.#headLength = 0;
    this.#bodyLength = 0;
    this.#body = new Uint8Array(length);
  }
}
