/** Size in bytes of a frame's length field, little-endian. */
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

/** UTF-16 code units encoded at a time, before other work gets its turn. */
const SLICE = 256 * 1024;

/** Yields a frame containing the text as UTF-8, in pieces encoded on demand. */
export function* textFrame(text: string): Generator<Uint8Array> {
  yield frameHead(Buffer.byteLength(text));
  for (let from = 0; from < text.length; ) {
    const goal = Math.min(from + SLICE, text.length);
    const to = goal < text.length && isHighSurrogate(text.charCodeAt(goal - 1)) ? goal - 1 : goal;
    yield Buffer.from(text.slice(from, to));
    from = to;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
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
    if (length > this.#most) throw new BrokenFrame(`a frame of ${length} bytes is too large`);
    this.#headLength = 0;
    this.#bodyLength = 0;
    this.#body = new Uint8Array(length);
  }
}
