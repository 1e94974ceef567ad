import { sha256 } from "@noble/hashes/sha2.js";
import type { BundleFileDigest } from "../../article14/format/manifest.ts";
import { isEqual } from "../../proof/hash.ts";
import type { ArchivedFile } from "./archive/archive.ts";
import { Breath } from "./breath.ts";

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

/** Bytes of a line: an entry has some kilobytes at most, and the record of an erasure some tens of them. */
const LINE_LIMIT = 256_000;
const NEWLINE = 10;
const NOTHING = new Uint8Array(0);

/** Goes through a file once, by lines or by parts of known bytes, and hashes all of it. It holds no more than a line. */
export class FileCursor {
  readonly #name: string;
  readonly #chunks: AsyncGenerator<Uint8Array, void>;
  readonly #hash: RunningHash;
  readonly #most: number;
  readonly #breath: Breath;
  #size = 0;
  #isEnded = false;
  #waiting: Uint8Array = NOTHING;

  /** @param most Bytes after which it gives up: what is longer is not what was listed. */
  constructor(file: ArchivedFile, hash: RunningHash, most: number, breath = new Breath()) {
    this.#name = file.name;
    this.#chunks = file.chunks();
    this.#hash = hash;
    this.#most = most;
    this.#breath = breath;
  }

  /** The next line without its newline; null at the end. A last line without one is none: see `drain`. @throws LineTooLong */
  async line(): Promise<Uint8Array | null> {
    const parts: Uint8Array[] = [];
    for (let length = 0; ; ) {
      const at = this.#waiting.indexOf(NEWLINE);
      const part = at < 0 ? this.#waiting : this.#waiting.subarray(0, at);
      length += part.length;
      if (length > LINE_LIMIT) throw new LineTooLong(this.#name);
      if (part.length > 0) parts.push(part);
      if (at >= 0) {
        this.#waiting = this.#waiting.subarray(at + 1);
        return joined(parts, length);
      }
      const next = await this.#next();
      this.#waiting = next ?? joined(parts, length);
      if (!next) return null;
    }
  }

  /** Whether these bytes come next; if so, it goes on behind them. */
  async takes(expected: Uint8Array): Promise<boolean> {
    const parts = [this.#waiting];
    let length = this.#waiting.length;
    while (length < expected.length) {
      const next = await this.#next();
      if (!next) break;
      parts.push(next);
      length += next.length;
    }
    this.#waiting = joined(parts, length);
    if (length < expected.length) return false;
    if (!isEqual(this.#waiting.subarray(0, expected.length), expected)) return false;
    this.#waiting = this.#waiting.subarray(expected.length);
    return true;
  }

  /** All of the file, of one that has `most` bytes at most; null of a longer one. */
  async all(): Promise<Uint8Array | null> {
    const parts = [this.#waiting];
    let length = this.#waiting.length;
    for (let next = await this.#next(); next; next = await this.#next()) {
      parts.push(next);
      length += next.length;
    }
    this.#waiting = joined(parts, length);
    return this.#size > this.#most ? null : this.#waiting;
  }

  /** Reads to the end. @returns whether anything was left */
  async drain(): Promise<boolean> {
    let isLeft = this.#waiting.length > 0;
    this.#waiting = NOTHING;
    while (await this.#next()) isLeft = true;
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

  async #next(): Promise<Uint8Array | null> {
    if (this.#isEnded || this.#size > this.#most) return null;
    if (this.#breath.isDue) await this.#breath.take();
    const next = await this.#chunks.next();
    if (next.done) {
      this.#isEnded = true;
      return null;
    }
    const chunk = next.value;
    this.#size += chunk.length;
    if (this.#size > this.#most) return null;
    this.#hash.update(chunk);
    return chunk;
  }
}

/** Puts parts together once, whatever their number. */
function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = parts;
  if (only?.length === length) return only;
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
