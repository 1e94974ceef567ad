import type { Clock } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import type { RandomSource } from "../../base/ids.ts";
import type { Config } from "../../config/config.ts";
import { createEmbedder, type Embedder, type EmbeddingParts } from "./embedder.ts";

/** The embedder of a previously configured model; null if its provider is gone. */
export async function formerEmbedder(
  config: Pick<Config, "embeddings" | "providers">,
  clock: Clock,
  random: RandomSource,
  shared: EmbeddingParts,
): Promise<Embedder | null> {
  try {
    return await createEmbedder(config, clock, random, shared);
  } catch (error) {
    if (error instanceof OperatorError) return null;
    throw error;
  }
}
