import { type Boundary, simplify } from "../../access/memory-scope.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import type { VaultDocument } from "../../vault/document.ts";
import type { Vault } from "../../vault/vault.ts";

/** A document that a request names, and where it names it (a JSON Pointer, RFC 6901). */
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

/** The maximum number of documents in one task, and the maximum total length of their texts in UTF-16 code units. */
export const MOST_DOCUMENTS = 32;
const MOST_CHARACTERS = 1_000_000;

/** Thrown when a document of a task can no longer be read: it was deleted, moved out of the boundary, or grew. */
export class DocumentUnavailable extends Error {
  override readonly name = "DocumentUnavailable";
}

/** @throws Problem 422 `validation_failed` naming the location of a document outside the boundary */
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
      throw invalidField(path, `does not name a document that the agent may see: ${JSON.stringify(id)}`);
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
  const reading = new DocumentReading(vault, workspaceId, memoryScope);
  for (const [id, mentions] of mentionsOf(documents)) await reading.read(id, mentions);
  return reading.texts;
}

/** Reads the available documents up to the same total length, and leaves out the rest. */
export async function readAvailable(
  vault: DocumentReads,
  workspaceId: number,
  memoryScope: Boundary,
  documents: readonly NamedDocument[],
): Promise<ReadonlyMap<string, DocumentText>> {
  const reading = new DocumentReading(vault, workspaceId, memoryScope);
  for (const [id, mentions] of mentionsOf(documents)) {
    try {
      await reading.read(id, mentions);
    } catch (error) {
      if (!(error instanceof DocumentUnavailable)) throw error;
    }
  }
  return reading.texts;
}

/** How often each document is named. Its text is sent each time. */
function mentionsOf(documents: readonly NamedDocument[]): ReadonlyMap<string, number> {
  const mentions = new Map<string, number>();
  for (const { id } of documents) mentions.set(id, (mentions.get(id) ?? 0) + 1);
  return mentions;
}

/** Reads the documents of one task. They may have grown since the task was accepted. */
class DocumentReading {
  readonly texts = new Map<string, DocumentText>();
  readonly #vault: DocumentReads;
  readonly #workspaceId: number;
  readonly #boundary: Boundary;
  #characters = MOST_CHARACTERS;

  constructor(vault: DocumentReads, workspaceId: number, memoryScope: Boundary) {
    this.#vault = vault;
    this.#workspaceId = workspaceId;
    this.#boundary = simplify(memoryScope);
  }

  /** @throws DocumentUnavailable before reading a text that would make the documents too long in total */
  async read(id: string, mentions: number): Promise<void> {
    const most = Math.floor(this.#characters / mentions);
    const document = await readDocument(this.#vault, this.#workspaceId, this.#boundary, id, most);
    this.#characters -= document.text.length * mentions;
    this.texts.set(id, document);
  }
}

/** How often to read a document that is being rewritten. */
const ATTEMPTS = 3;

async function readDocument(
  vault: DocumentReads,
  workspaceId: number,
  boundary: Boundary,
  id: string,
  most: number,
): Promise<DocumentText> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const document = await findDocument(vault, workspaceId, boundary, id);
    if (!document) throw new DocumentUnavailable(`The agent can no longer see the document ${id}.`);
    if (document.characters > most) {
      throw new DocumentUnavailable(`The documents together are longer than ${MOST_CHARACTERS} characters.`);
    }
    const text = await vault.text(document);
    // Shorter if it was replaced between the two reads.
    if (text.length === document.characters) return { title: document.title, text: text.toWellFormed() };
  }
  throw new DocumentUnavailable(`The document ${id} changes too often to be read.`);
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
