import type { Clock } from "../../base/clock.ts";
import type { RandomSource } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { Config } from "../../config/config.ts";
import { UsageTally } from "../../gate/usage/tally.ts";
import type { Db } from "../../store/db.ts";
import { proveWritable } from "../../store/prove.ts";
import { createEmbedder, type Embedder, type EmbeddingParts } from "./embedder.ts";
import { createLanes } from "./lanes.ts";
import { formerEmbedder } from "./previous-embedder.ts";
import { whileWritable } from "./while-writable.ts";

export interface OpenEmbeddingParts {
  readonly config: Pick<Config, "embeddings" | "providers">;
  readonly db: Db;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}

export interface Embedding {
  /** Null: `builtin/lexical`, which needs no model. */
  readonly embedder: Embedder | null;
  /** The embedder of a previously configured model; null if its provider is gone. */
  formerEmbedder(model: string): Promise<Embedder | null>;
  /** Writes the usage counted so far to the statistics. */
  flushUsage(): Promise<void>;
}

/**
 * Opens the embedding models. They share request lanes, count their usage in the statistics, and are called only
 * while the store is writable.
 */
export async function openEmbedding({
  config,
  db,
  clock,
  random,
  log,
}: OpenEmbeddingParts): Promise<Embedding> {
  const usage = new UsageTally(db, log);
  const shared: EmbeddingParts = {
    lanes: createLanes(),
    used: ({ workspaceId, model: name, tokens: inputTokens, durationMs }) =>
      usage.note({
        ...{ workspaceId, agentId: null, kind: "model", name, outcome: "succeeded" },
        ...{ at: clock.now(), durationMs, inputTokens },
      }),
  };
  const guarded = (embedder: Embedder | null) =>
    embedder && whileWritable(embedder, () => proveWritable(db, clock));
  return {
    embedder: guarded(await createEmbedder(config, clock, random, shared)),
    formerEmbedder: async (model) =>
      guarded(await formerEmbedder({ ...config, embeddings: { model } }, clock, random, shared)),
    flushUsage: () => usage.flush(),
  };
}
