import { sha256 } from "@noble/hashes/sha2.js";
import type { BundleFileDigest } from "../../article14/format/manifest.ts";
import { isEqual } from "../../proof/hash.ts";
import type { ArchivedFile } from "./archive.ts";

/** SHA-256 of what comes in parts. */
export interface RunningHash {
  update(bytes: Uint8Array): unknown;
  digest(): Uint8Array;
}

/** What runs everywhere; a program may have a faster one. */
export const portableHash = (): RunningHash => sha256.create();

/** A line is longer than any that a gateway writes. */
export class LineTooLong extends Error {
  override readonly name = "LineTooLong";

  constructor(file: string) {
    super(`${file} holds a line that is far too long`);
  }
}

/** Bytes of a line: an entry has some kilobytes at most. */
const LINE_LIMIT = 4_000_000;
const NEWLINE = 10;
const NOTHING = new Uint8Array(0);

/** Goes through a file once, by lines or by parts of known bytes, and hashes all of it. It holds no more than a line. */
export class FileCursor {
  readonly #name: string;
  readonly #chunks: AsyncGenerator<Uint8Array, void>;
  readonly #hash: RunningHash;
  readonly #most: number;
  #size = 0;
  #isEnded = false;
  #waiting: Uint8Array = NOTHING;

  /** @param most Bytes after which it gives up: what is longer is not what was listed. */
  constructor(file: ArchivedFile, hash: RunningHash, most: number) {
    this.#name = file.name;
    this.#chunks = file.chunks();
    this.#hash = hash;
    this.#most = most;
  }

  /** The next line without its newline; null at the end. A last line without one is none: see `drain`. @throws LineTooLong */
  async line(): Promise<Uint8Array | null> {
    for (let searched = 0; ; ) {
      const at = this.#waiting.indexOf(NEWLINE, searched);
      if (at >= 0) {
        const line = this.#waiting.subarray(0, at);
        this.#waiting = this.#waiting.subarray(at + 1);
        return line;
      }
      searched = this.#waiting.length;
      if (searched > LINE_LIMIT) throw new LineTooLong(this.#name);
      if (!(await this.#more())) return null;
    }
  }

  /** Whether these bytes come next; if so, it goes on behind them. */
  async takes(expected: Uint8Array): Promise<boolean> {
    while (this.#waiting.length < expected.length) if (!(await this.#more())) return false;
    if (!isEqual(this.#waiting.subarray(0, expected.length), expected)) return false;
    this.#waiting = this.#waiting.subarray(expected.length);
    return true;
  }

  /** All of the file, of one that has `most` bytes at most; null of a longer one. */
  async all(): Promise<Uint8Array | null> {
    while (await this.#more());
    return this.#size > this.#most ? null : this.#waiting;
  }

  /** Reads to the end. @returns whether anything was left */
  async drain(): Promise<boolean> {
    let isLeft = this.#waiting.length > 0;
    this.#waiting = NOTHING;
    while (await this.#more()) {
      isLeft = true;
      this.#waiting = NOTHING;
    }
    return isLeft;
  }

  /** Whether the file is the one that was listed. MUST come after `drain` or `all`. */
  isListed({ sha256: hash, size }: BundleFileDigest): boolean {
    return this.#isEnded && this.#size === size && this.#hash.digest().toHex() === hash;
  }

  /** Stops unpacking what is not read to its end. */
  async close(): Promise<void> {
    await this.#chunks.return();
  }

  async #more(): Promise<boolean> {
    if (this.#isEnded || this.#size > this.#most) return false;
    const next = await this.#chunks.next();
    if (next.done) {
      this.#isEnded = true;
      return false;
    }
    const chunk = next.value;
    this.#size += chunk.length;
    if (this.#size > this.#most) return false;
    this.#hash.update(chunk);
    if (this.#waiting.length === 0) this.#waiting = chunk;
    else {
      const joined = new Uint8Array(this.#waiting.length + chunk.length);
      joined.set(this.#waiting);
      joined.set(chunk, this.#waiting.length);
      this.#waiting = joined;
    }
    return true;
  }
}
