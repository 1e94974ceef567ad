import { sha256 } from "@noble/hashes/sha2.js";
import type { BundleFileDigest } from "../../article14/format/manifest.ts";
import { isEqual } from "../../proof/hash.ts";
import type { ArchivedFile } from "./archive/archive.ts";
import { LoopYield } from "./breath.ts";

/** SHA-256 of data that arrives in parts. */
export interface RunningHash {
  update(bytes: Uint8Array): unknown;
  digest(): Uint8Array;
}

/** Runs on every platform. Programs may supply a faster one. */
export const portableHash = (): RunningHash => sha256.create();

/** A line is longer than any line that a gateway writes. */
export class LineTooLong extends Error {
  override readonly name = "LineTooLong";

  constructor(file: string) {
    super(`${file} contains a line that is far too long`);
  }
}

/**
 * Maximum length in bytes of a line. An entry takes a few kilobytes at most, and the record of an erasure tens of
 * kilobytes.
 */
const LINE_LIMIT = 256_000;
const NEWLINE = 10;
const NOTHING = new Uint8Array(0);

/** Reads a file once, by lines or by expected bytes, and hashes all of it. At most one line is kept in memory. */
export class FileCursor {
  readonly #name: string;
  readonly #chunks: AsyncGenerator<Uint8Array, void>;
  readonly #hash: RunningHash;
  readonly #most: number;
  readonly #breath: LoopYield;
  #size = 0;
  #isEnded = false;
  #waiting: Uint8Array = NOTHING;

  /** @param most Number of bytes after which it stops: a longer file is not the one listed */
  constructor(file: ArchivedFile, hash: RunningHash, most: number, breath = new LoopYield()) {
    this.#name = file.name;
    this.#chunks = file.chunks();
    this.#hash = hash;
    this.#most = most;
    this.#breath = breath;
  }

  /**
   * The next line without its newline; null at the end. A last line without a newline does not count as a line (see
   * `drain`). @throws LineTooLong
   */
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

  /** Whether the next bytes are the expected ones. If so, moves past them. */
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

  /** The whole file; null if it is longer than `most` bytes. */
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

  /** Whether the file is the one listed. MUST be called after `drain` or `all`. */
  isListed({ sha256: hash, size }: BundleFileDigest): boolean {
    return this.#isEnded && this.#size === size && this.#hash.digest().toHex() === hash;
  }

  /** Stops unpacking if the file was not read to the end. */
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

/** Concatenates parts with a single copy, however many there are. */
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
