import type { Boundary } from "../access/memory-scope.ts";
import { invalidField } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import { EmbeddingFailed } from "../models/embed/embedder.ts";
import { JobOverLimit, JobRefused } from "../reading/job-errors.ts";
import type { VaultDocument } from "./document.ts";
import { vectorsOf } from "./embed-passages.ts";
import { holdInside, holdNameable } from "./may-write.ts";
import type { Metadata, PreparedDocument, PrepareRequest } from "./messages.ts";
import type { Commit, VaultParts } from "./parts.ts";
import type { DocumentKeys } from "./rows/document-keys.ts";
import { type Space, WrongDimension } from "./rows/spaces.ts";
import type { Filler } from "./upkeep/backfill.ts";
import type { Remover } from "./upkeep/remover.ts";
import type { Upkeep } from "./upkeep/upkeep.ts";
import { Writing } from "./writing.ts";

/** Maximum number of passages embedded while the writer waits. A longer document gets its other vectors later. */
const EMBEDDED_AT_ONCE = 256;
/** How long a writer waits for vectors. Word search finds the document without them. */
const EMBED_MS = 10_000;

export interface WriteRequest {
  readonly workspaceId: number;
  readonly boundary: Boundary;
  /** Undefined: a new document. */
  readonly id: string | undefined;
  readonly title: string;
  readonly scope: string;
  readonly sourceUri: string | null;
  readonly metadata: Metadata;
  readonly content: PrepareRequest["content"];
  readonly createdBy: string;
  /** Aborted when the caller has disconnected. A document that is still waiting by then is not read. */
  readonly signal?: AbortSignal | undefined;
}

export interface WriteResult {
  readonly document: VaultDocument;
  /** False if it replaced a document with the same id. */
  readonly isNew: boolean;
}

/** What writing needs in addition to the shared parts. */
export interface WriteParts extends VaultParts {
  readonly remover: Remover;
  readonly filler: Pick<Filler, "isNotWaitedFor" | "slow" | "rest">;
  /** Reports a document that waits for its vectors. */
  readonly waits: Upkeep["waits"];
  readonly keys: DocumentKeys;
}

/** Called just before the last transaction with a description of what will have been written, for its evidence. */
export type DescribeWrite = (document: {
  readonly id: string;
  readonly chunks: number;
  readonly characters: number;
}) => void;

/**
 * Writes a document. Its parts are written in invisible slices. A final transaction, with the call's evidence, makes
 * it visible as a whole and hides the document that it replaces.
 *
 * @throws Problem 403 `scope_forbidden`, 422 `validation_failed` for a document that cannot be read, 429 `queue_full`
 */
export async function writeDocument(
  parts: WriteParts,
  request: WriteRequest,
  commit: Commit,
  announce: DescribeWrite,
): Promise<WriteResult> {
  // Checked here because all callers come this way: a document with any other id could neither be read nor removed.
  if (request.id !== undefined && !isId("doc", request.id)) {
    throw invalidField("/id", "is not a document id");
  }
  holdInside(request.boundary, request.scope);
  // Checked before the document is read, so a refusal takes the same time whether the id is taken or free.
  await holdNameable(parts, request);
  const key = await parts.keys.next();
  const id = request.id ?? parts.ids("doc");
  const prepared = await prepare(parts, key, request);
  const vectors = await embed(parts, request, prepared);
  announce({ id, chunks: prepared.passages.length, characters: prepared.characters });
  const writing = new Writing(parts, request, { key, id, prepared, vectors });
  const written = await writing.write(commit);
  if (written.document.pending > 0) parts.waits({ workspaceId: request.workspaceId, key });
  return written;
}

async function prepare(
  parts: VaultParts,
  key: number,
  { workspaceId, title, content, signal }: WriteRequest,
): Promise<PreparedDocument> {
  try {
    return await parts.reading.prepare({ document: key, title, content }, { workspaceId, signal });
  } catch (error) {
    const field = content.kind === "text" ? "/text" : "/content_base64";
    if (error instanceof JobRefused) throw invalidField(error.field, error.message);
    if (error instanceof JobOverLimit)
      throw invalidField(field, `is too complex to be read: it ${error.message}`);
    throw error;
  }
}

/** Gets the model's vectors of the document's passages. Missing ones are filled in later. */
async function embed(
  parts: WriteParts,
  { workspaceId, scope, title }: WriteRequest,
  { passages, pages }: PreparedDocument,
): Promise<readonly (Float32Array | null)[]> {
  const { embedder, spaces, filler, clock } = parts;
  const space = spaces.written.find(({ name }) => name === embedder?.space);
  if (!embedder || !space || !spaces.isAvailable || filler.isNotWaitedFor(space)) return [];
  const text = pages.map((page) => page.text).join("");
  const wanted = passages
    .slice(0, EMBEDDED_AT_ONCE)
    .map(({ start, end, hash }) => ({ title, text: text.slice(start, end), hash }));
  const tooLong = new AbortController();
  const cancel = clock.after(EMBED_MS, () => tooLong.abort());
  try {
    const vectors = await vectorsOf(parts, embedder, { workspaceId, scope }, wanted, tooLong.signal);
    const first = vectors.find((vector) => vector !== null);
    if (first) await spaces.dimension(space, first.length);
    return vectors;
  } catch (error) {
    waitsForVectors(parts, space, error, tooLong.signal.aborted);
    return [];
  } finally {
    cancel();
  }
}

/** @throws the error, unless it is the model's fault */
function waitsForVectors(
  { embedder, filler, log }: WriteParts,
  space: Space,
  error: unknown,
  isLate: boolean,
): void {
  const model = embedder?.model;
  const waits = "a document is waiting for its vectors; word search already finds it";
  if (isLate) {
    log.warn(waits, { model, reason: "slow" });
    filler.slow(space);
  } else if (error instanceof EmbeddingFailed) {
    log.warn(waits, { model, reason: error.reason });
    filler.rest(space, error.retryAfterMs);
  } else if (error instanceof WrongDimension) {
    const problem = error.message;
    log.error("the embedding model has changed; word search still works", { model, problem });
    filler.rest(space);
  } else throw error;
}
