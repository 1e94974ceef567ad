import { timestamp } from "../base/clock.ts";
import type { VaultDocument } from "./document.ts";
import type { FoundPassage } from "./messages.ts";
import type { VaultScope } from "./rows/scopes.ts";

/** A passage as REST and the vault's tools return it (contract, section 5). */
export function viewPassage(passage: FoundPassage) {
  return {
    document_id: passage.documentId,
    chunk_id: passage.chunkId,
    title: passage.title,
    text: passage.text,
    scope: passage.scope,
    score: passage.score,
    source_uri: passage.sourceUri,
    start: passage.start,
    end: passage.end,
    metadata: passage.metadata,
    ...(passage.explain ? { explain: passage.explain } : {}),
  };
}

/** A scope with the totals of its documents. */
export function viewScope({ path, documents, characters, updatedAt }: VaultScope) {
  return { scope: path, documents, characters, updated_at: timestamp(updatedAt) };
}

/** A document without its text. */
export function viewDocument(document: VaultDocument) {
  return {
    id: document.id,
    title: document.title,
    scope: document.scope,
    source_uri: document.sourceUri,
    metadata: document.metadata,
    content_type: document.contentType,
    content_hash: document.contentHash,
    characters: document.characters,
    chunks: document.chunks,
    vectors: document.pending === 0 ? "ready" : "pending",
    created_by: document.createdBy,
    created_at: timestamp(document.createdAt),
    updated_at: timestamp(document.updatedAt),
  };
}
