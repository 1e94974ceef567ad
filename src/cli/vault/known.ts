import type { OperatorApi } from "../operator.ts";
import type { MetadataArguments } from "./arguments.ts";
import { ask } from "./send.ts";

/** Up to this many files are looked up one by one; for more, the whole list is read, 200 documents per call. */
const ONE_BY_ONE = 50;

/** A document in the vault's list. */
export interface ExistingDocument {
  readonly id: string;
  readonly title: string;
  readonly scope: string;
  readonly source_uri: string | null;
  readonly metadata: MetadataArguments;
  readonly content_type: string;
  readonly content_hash: string;
  readonly chunks: number;
  readonly updated_at: string;
}

interface DocumentPage {
  readonly data: readonly ExistingDocument[];
  readonly next_cursor: string | null;
}

const LIST = "/v1/vault/documents";

/** The documents with these sources; the newest if several share a source. */
export async function knownDocuments(
  api: OperatorApi,
  sources: readonly string[],
  stop: AbortSignal,
): Promise<ReadonlyMap<string, ExistingDocument>> {
  const known = new Map<string, ExistingDocument>();
  if (sources.length <= ONE_BY_ONE) {
    for (const source of sources) {
      const query = `?limit=1&source_uri=${encodeURIComponent(source)}`;
      const [document] = (await ask<DocumentPage>(api, LIST + query, stop)).data;
      if (document) known.set(source, document);
    }
    return known;
  }
  const wanted = new Set(sources);
  let cursor: string | null = null;
  do {
    const after: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page: DocumentPage = await ask<DocumentPage>(api, `${LIST}?limit=200${after}`, stop);
    for (const document of page.data) {
      const source = document.source_uri;
      if (source !== null && wanted.has(source) && !known.has(source)) known.set(source, document);
    }
    cursor = page.next_cursor;
  } while (cursor !== null);
  return known;
}
