import { FairSlots } from "../../limits/fair-slots.ts";
import { DOCUMENT_EMBEDDINGS, QUERY_EMBEDDINGS } from "../../limits/request-plan.ts";

/** Query slots kept for workspaces without queries in flight. */
const QUERIES_KEPT_FOR_OTHERS = 4;
const WAITING = { waitingPerWorkspace: 1_000, waiting: 10_000 };

/**
 * This process's slots for vector requests, across all models. Workspaces take turns, one batch each. Queries are
 * short and always awaited, so they do not queue behind documents.
 */
export interface EmbeddingLanes {
  readonly document: FairSlots;
  readonly query: FairSlots;
}

export function createLanes(): EmbeddingLanes {
  return {
    // A document batch may delay other workspaces while it runs: no slot is reserved for them.
    document: new FairSlots({ ...WAITING, slots: DOCUMENT_EMBEDDINGS, keptForOthers: 0 }),
    query: new FairSlots({ ...WAITING, slots: QUERY_EMBEDDINGS, keptForOthers: QUERIES_KEPT_FOR_OTHERS }),
  };
}
