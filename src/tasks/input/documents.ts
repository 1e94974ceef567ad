import { type Boundary, simplify } from "../../access/memory-scope.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import type { VaultDocument } from "../../vault/document.ts";
import type { Vault } from "../../vault/vault.ts";

/** A document that a request names, with its place there (RFC 6901). */
export interface NamedDocument {
  readonly id: string;
  readonly path: string;
}

/** A document's text as a model reads it. */
export interface DocumentText {
  readonly title: string;
  readonly text: string;
}

type DocumentReads = Pick<Vault, "find" | "text">;

/** The maximum number of documents in one task, and of UTF-16 code units in all their texts together. */
export const MOST_DOCUMENTS = 32;
const MOST_CHARACTERS = 1_000_000;

/** Thrown when a document of a task can no longer be read: it was deleted, moved out of the boundary, or grew. */
export class DocumentUnavailable extends Error {
  override readonly name = "DocumentUnavailable";
}

/** @throws Problem 422 `validation_failed` naming the place of a document outside the boundary */
export async function checkDocuments(
  vault: DocumentReads,
  workspaceId: number,
  memoryScope: Boundary,
  documents: readonly NamedDocument[],
): Promise<void> {
  const boundary = simplify(memoryScope);
  let characters = 0;
  for (const { id, path } of documents) {
    const document = await findDocument(vault, workspaceId, boundary, id);
    if (!document)
      throw invalidField(path, `names no document that the agent may see: ${JSON.stringify(id)}`);
    characters += document.characters;
    if (characters <= MOST_CHARACTERS) continue;
    throw invalidField(path, `makes the documents longer than ${MOST_CHARACTERS} characters in total`);
  }
}

/**
 * Reads documents inside a boundary.
 * @throws DocumentUnavailable
 */
export async function readDocuments(
  vault: DocumentReads,
  workspaceId: number,
  memoryScope: Boundary,
  documents: readonly NamedDocument[],
): Promise<ReadonlyMap<string, DocumentText>> {
  const boundary = simplify(memoryScope);
  const texts = new Map<string, DocumentText>();
  let characters = 0;
  for (const { id } of documents) {
    const document = texts.get(id) ?? (await readDocument(vault, workspaceId, boundary, id));
    texts.set(id, document);
    characters += document.text.length;
    if (characters <= MOST_CHARACTERS) continue;
    throw new DocumentUnavailable(`The documents are longer than ${MOST_CHARACTERS} characters in total.`);
  }
  return texts;
}

/** Reads the documents that can be read, and leaves out the others. */
export async function readAvailable(
  vault: DocumentReads,
  workspaceId: number,
  memoryScope: Boundary,
  documents: readonly NamedDocument[],
): Promise<ReadonlyMap<string, DocumentText>> {
  const texts = new Map<string, DocumentText>();
  for (const { id } of documents) {
    try {
      if (!texts.has(id)) texts.set(id, await readDocument(vault, workspaceId, simplify(memoryScope), id));
    } catch (error) {
      if (!(error instanceof DocumentUnavailable)) throw error;
    }
  }
  return texts;
}

/** How often to read a document that is being rewritten. */
const ATTEMPTS = 3;

async function readDocument(
  vault: DocumentReads,
  workspaceId: number,
  boundary: Boundary,
  id: string,
): Promise<DocumentText> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const document = await findDocument(vault, workspaceId, boundary, id);
    if (!document) throw new DocumentUnavailable(`The agent can no longer see the document ${id}.`);
    if (document.characters > MOST_CHARACTERS) break;
    const text = await vault.text(document);
    // Shorter if it was replaced between the two reads.
    if (text.length === document.characters) return { title: document.title, text: text.toWellFormed() };
  }
  throw new DocumentUnavailable(`The document ${id} is too long, or changes too often to be read.`);
}

/** Undefined if the document does not exist or is outside the boundary. */
async function findDocument(
  vault: DocumentReads,
  workspaceId: number,
  boundary: Boundary,
  id: string,
): Promise<VaultDocument | undefined> {
  try {
    return await vault.find(workspaceId, boundary, id);
  } catch (error) {
    if (error instanceof Problem && error.code === "not_found") return undefined;
    throw error;
  }
}
