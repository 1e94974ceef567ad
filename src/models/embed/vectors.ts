import { field } from "../../base/json.ts";

/** Dimensions a model may have; the largest in use have 4,096. */
const LEAST_DIMENSIONS = 2;
const MOST_DIMENSIONS = 8_192;

/**
 * Checks an answer and scales its vectors to unit length, in float64. All vectors of one answer MUST have the same
 * dimension.
 * @returns the vectors, or a description of the problem without any of the answer's content
 */
export function unitVectors(
  embeddings: readonly (readonly number[])[],
  count: number,
): Float32Array[] | string {
  if (embeddings.length !== count) return `sent ${embeddings.length} vectors for ${count} texts`;
  const dimensions = embeddings[0]?.length ?? 0;
  if (dimensions < LEAST_DIMENSIONS || dimensions > MOST_DIMENSIONS)
    return `sent a vector of ${dimensions} dimensions; ${LEAST_DIMENSIONS} to ${MOST_DIMENSIONS} are supported`;
  const vectors: Float32Array[] = [];
  for (const embedding of embeddings) {
    if (embedding.length !== dimensions) return "sent vectors of different dimensions in one answer";
    const unit = unitVector(embedding);
    if (!unit) return "sent a vector that is zero or contains a value that is not a number";
    vectors.push(unit);
  }
  return vectors;
}

/**
 * Undefined if the vector has no direction. Divides by the largest number first, so that no square overflows or
 * underflows.
 */
function unitVector(embedding: readonly number[]): Float32Array | undefined {
  let largest = 0;
  for (const value of embedding) {
    if (!Number.isFinite(value)) return undefined;
    largest = Math.max(largest, Math.abs(value));
  }
  if (largest === 0) return undefined;
  let sum = 0;
  for (const value of embedding) sum += (value / largest) ** 2;
  const length = Math.sqrt(sum);
  return Float32Array.from(embedding, (value) => value / largest / length);
}

/**
 * The vectors in the order of the texts. OpenAI's format numbers them (`data[].index`), whereas the SDK keeps the
 * order of arrival. If the numbers are missing or not a permutation, the order of arrival is kept.
 * @param body The parsed response, before the SDK's schema dropped the numbers
 */
export function inOrder<Item>(embeddings: readonly Item[], body: unknown): readonly Item[] {
  const data = field(body, "data");
  if (!Array.isArray(data) || data.length !== embeddings.length) return embeddings;
  const sorted = new Map<number, Item>();
  for (const [place, item] of embeddings.entries()) {
    const index: unknown = field(data[place], "index");
    if (typeof index === "number" && Number.isInteger(index) && index >= 0 && index < data.length)
      sorted.set(index, item);
  }
  if (sorted.size !== embeddings.length) return embeddings;
  return [...sorted].sort(([a], [b]) => a - b).map(([, item]) => item);
}
