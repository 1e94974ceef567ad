const HEAD_END = Buffer.from("\r\n\r\n");
const LINE_END = Buffer.from("\r\n");
const LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding: *chunked/i;
const HEAD_LIMIT = 64 * 1024;

/** Receives the parts of an answer. */
export interface Receiver {
  /** Part of the body. Valid only during the call. */
  body(bytes: Buffer): void;
  end(status: number): void;
}

type State = "head" | "fixed" | "size" | "chunk" | "chunk-end" | "last";

/**
 * Parses as much of HTTP/1.1 (RFC 9112) as the measured servers use: a content length, or chunks without trailers.
 */
export class ResponseParser {
  readonly #receiver: Receiver;
  #state: State = "head";
  #status = 0;
  #left = 0;
  #rest: Buffer | null = null;

  constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  /** @throws Error if this is not an answer */
  push(bytes: Buffer): void {
    const input = this.#rest === null ? bytes : Buffer.concat([this.#rest, bytes]);
    this.#rest = null;
    let at = 0;
    while (at < input.length) {
      const next = this.#step(input, at);
      if (next < 0) {
        if (input.length - at > HEAD_LIMIT) throw new Error("the head of an answer has no end");
        this.#rest = input.subarray(at);
        return;
      }
      at = next;
    }
  }

  /** @returns the position to continue from, or -1 if more bytes are needed */
  #step(input: Buffer, at: number): number {
    switch (this.#state) {
      case "head":
        return this.#head(input, at);
      case "fixed":
      case "chunk":
        return this.#body(input, at);
      case "chunk-end":
        return this.#lineEnd(input, at, "size");
      case "last":
        return this.#lineEnd(input, at, "head");
      case "size":
        return this.#size(input, at);
    }
  }

  #head(input: Buffer, at: number): number {
    const end = input.indexOf(HEAD_END, at);
    if (end < 0) return -1;
    const head = input.toString("latin1", at, end);
    this.#status = Number(head.slice(9, 12));
    if (!head.startsWith("HTTP/1.1 ") || !(this.#status >= 200)) throw new Error("not an answer of HTTP/1.1");
    const length = LENGTH.exec(head)?.[1];
    if (length !== undefined) {
      this.#left = Number(length);
      this.#state = "fixed";
      if (this.#left === 0) this.#end();
    } else if (CHUNKED.test(head)) this.#state = "size";
    else throw new Error("an answer whose end cannot be determined");
    return end + HEAD_END.length;
  }

  #body(input: Buffer, at: number): number {
    const taken = Math.min(this.#left, input.length - at);
    this.#receiver.body(input.subarray(at, at + taken));
    this.#left -= taken;
    if (this.#left === 0) {
      if (this.#state === "fixed") this.#end();
      else this.#state = "chunk-end";
    }
    return at + taken;
  }

  #size(input: Buffer, at: number): number {
    const end = input.indexOf(LINE_END, at);
    if (end < 0) return -1;
    const size = input.toString("latin1", at, end);
    if (!/^[0-9a-f]{1,8}$/i.test(size)) throw new Error("a chunk without a size");
    this.#left = Number.parseInt(size, 16);
    this.#state = this.#left === 0 ? "last" : "chunk";
    return end + LINE_END.length;
  }

  #lineEnd(input: Buffer, at: number, next: "size" | "head"): number {
    if (input.length - at < LINE_END.length) return -1;
    if (input[at] !== LINE_END[0] || input[at + 1] !== LINE_END[1]) throw new Error("a chunk without an end");
    if (next === "head") this.#end();
    else this.#state = next;
    return at + LINE_END.length;
  }

  #end(): void {
    this.#state = "head";
    this.#receiver.end(this.#status);
  }
}
