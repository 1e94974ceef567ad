import { FairSlots } from "../../limits/fair-slots.ts";
import { DOCUMENT_EMBEDDINGS, QUERY_EMBEDDINGS } from "../../limits/request-plan.ts";

/** Queries that are left for workspaces that have none in flight. */
const QUERIES_KEPT_FOR_OTHERS = 4;
const WAITING = { waitingPerWorkspace: 1_000, waiting: 10_000 };

/**
 * The requests for vectors of this process, of all models: workspaces take turns at them, a batch each. Queries are short and
 * somebody waits for each, so they do not wait behind the documents.
 */
export interface EmbeddingLanes {
  readonly document: FairSlots;
  readonly query: FairSlots;
}

export function createLanes(): EmbeddingLanes {
  return {
    // A batch of one workspace holds up those of others for as long as it takes, so nothing is kept free.
    document: new FairSlots({ ...WAITING, slots: DOCUMENT_EMBEDDINGS, keptForOthers: 0 }),
    query: new FairSlots({ ...WAITING, slots: QUERY_EMBEDDINGS, keptForOthers: QUERIES_KEPT_FOR_OTHERS }),
  };
}
