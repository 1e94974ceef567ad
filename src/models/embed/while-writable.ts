import type { Embedder } from "./embedder.ts";

/**
 * An embedder that calls its model only if the store can be written. Vectors are requested before a search or a
 * document is recorded, so the text would otherwise be sent, and paid for, without evidence.
 * @param prove rejects if the store cannot be written; then `embed` rejects too
 */
export function whileWritable(embedder: Embedder, prove: () => Promise<void>): Embedder {
  return {
    model: embedder.model,
    space: embedder.space,
    async embed(texts, kind, options) {
      await prove();
      return embedder.embed(texts, kind, options);
    },
  };
}
