import { createHash } from "node:crypto";

/** The vectors of recent questions, by the hash of their text. Vectors are copied in and out. */
export class QueryCache {
  readonly #most: number;
  readonly #vectors = new Map<string, Float32Array>();

  /** @param most the maximum number of questions kept: 1,000 with 1,024 dimensions take 4 MB */
  constructor(most = 1_000) {
    this.#most = most;
  }

  get(text: string): Float32Array | undefined {
    const key = keyOf(text);
    const vector = this.#vectors.get(key);
    if (!vector) return undefined;
    this.#vectors.delete(key);
    this.#vectors.set(key, vector);
    return vector.slice();
  }

  set(text: string, vector: Float32Array): void {
    const key = keyOf(text);
    this.#vectors.delete(key);
    this.#vectors.set(key, vector.slice());
    if (this.#vectors.size <= this.#most) return;
    const [oldest] = this.#vectors.keys();
    if (oldest !== undefined) this.#vectors.delete(oldest);
  }
}

function keyOf(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
