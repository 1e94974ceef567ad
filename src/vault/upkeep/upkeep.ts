import type { Filler, WaitingDocument } from "./backfill.ts";
import type { Compactor } from "./compactor.ts";
import type { Remover } from "./remover.ts";

/** What is done in the background. */
export interface Upkeep {
  /** Removes what an earlier process left unfinished, and starts merging segments and filling in vectors. */
  start(): Promise<void>;
  /** Resolves when nothing is being merged or filled in. */
  stop(): Promise<void>;
  /** Reports a new segment of a scope. */
  added(workspaceId: number, scopeId: number): void;
  /** Reports a document that waits for its vectors. */
  waits(document: WaitingDocument): void;
}

export interface UpkeepParts {
  readonly remover: Pick<Remover, "takeOver">;
  readonly compactor: Pick<Compactor, "start" | "stop" | "added">;
  readonly filler: Pick<Filler, "start" | "stop" | "wake">;
}

/** The upkeep by the only process of a store. */
export function ownUpkeep({ remover, compactor, filler }: UpkeepParts): Upkeep {
  return {
    async start() {
      await remover.takeOver();
      await compactor.start();
      filler.start();
    },
    async stop() {
      await filler.stop();
      await compactor.stop();
    },
    added: (workspaceId, scopeId) => compactor.added(workspaceId, scopeId),
    waits: (document) => filler.wake(document),
  };
}
