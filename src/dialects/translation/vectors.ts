import type { EmbeddingModelV4, LanguageModelV4Usage } from "@ai-sdk/provider";
import { inOrder } from "../../models/embed/vectors.ts";
import { UnfinishedAnswer } from "../failures.ts";

/** The most texts in a request if the provider does not say. */
const UNKNOWN_TEXTS = 64;

export interface VectorRequest {
  readonly values: readonly string[];
  readonly dimensions: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface Vectors {
  /** In the order of the texts. */
  readonly vectors: readonly (readonly number[])[];
  /** Null unless the provider has counted each request. */
  readonly tokens: number | null;
}

/**
 * Asks for the vectors of all texts, in as many requests as the provider wants, one after the other.
 * @throws the provider's error
 */
export async function embedAll(
  model: EmbeddingModelV4,
  { values, dimensions, headers, signal }: VectorRequest,
): Promise<Vectors> {
  const most = Math.max(1, (await model.maxEmbeddingsPerCall) ?? UNKNOWN_TEXTS);
  const vectors: (readonly number[])[] = [];
  let tokens: number | null = 0;
  for (let from = 0; from < values.length; from += most) {
    const batch = values.slice(from, from + most);
    const answer = await model.doEmbed({
      ...{ values: batch, headers, abortSignal: signal },
      ...(dimensions === undefined ? {} : { dimensions }),
    });
    const made = inOrder(answer.embeddings, answer.response?.body);
    if (made.length !== batch.length) throw new UnfinishedAnswer("error");
    vectors.push(...made);
    tokens = tokens === null || answer.usage === undefined ? null : tokens + answer.usage.tokens;
  }
  return { vectors, tokens };
}

/** Vectors are no output. Null if the provider has not counted. */
export function vectorUsage(tokens: number | null): LanguageModelV4Usage | null {
  if (tokens === null) return null;
  return {
    inputTokens: { total: tokens, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 0, text: 0, reasoning: 0 },
  };
}
