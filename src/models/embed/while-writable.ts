import type { Embedder } from "./embedder.ts";

/**
 * An embedder whose model is asked only where the store can be written. Vectors are asked for before a search or a document
 * is recorded: its text would go out, and be paid for, with nothing to show for it.
 * @param prove rejects where the store cannot be written; so does `embed` then
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
