import type { Clock } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import type { RandomSource } from "../../base/ids.ts";
import type { Config } from "../../config/config.ts";
import { createEmbedder, type Embedder } from "./embedder.ts";

/** The embedder of a model that was configured once; null if its provider is gone. */
export async function formerEmbedder(
  config: Config,
  clock: Clock,
  random: RandomSource,
): Promise<Embedder | null> {
  try {
    return await createEmbedder(config, clock, random);
  } catch (error) {
    if (error instanceof OperatorError) return null;
    throw error;
  }
}
