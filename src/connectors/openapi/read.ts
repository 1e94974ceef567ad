import type { OutboundFetch } from "../outbound/fetch.ts";
import { readCapped } from "../outbound/read.ts";
import { ConnectorError } from "../source.ts";
import { DocumentFault } from "./fault.ts";

/** Maximum size of a document in bytes. GitHub's is 13 MiB. */
const MAX_BYTES = 32 * 1_024 * 1_024;
const ACCEPT = "application/vnd.oai.openapi+json, application/json, application/yaml, text/yaml, */*;q=0.5";

/** The text of an OpenAPI document, before it is read. */
export interface ApiDocumentText {
  readonly text: string;
  /** The URL that it was fetched from. */
  readonly url: string | null;
}

/**
 * The text of a document that is given as a URL or as text.
 * @param grow called with its length so far, while it is fetched
 * @throws DocumentFault if it is too long or not text; ConnectorError or what `fetch` or `grow` throws if it cannot
 *   be fetched
 */
export async function fetchDocument(
  spec: string,
  fetch: OutboundFetch,
  signal: AbortSignal,
  grow: (length: number) => void,
): Promise<ApiDocumentText> {
  const url = /^https?:\/\/\S+$/i.test(spec.trim()) ? spec.trim() : null;
  if (url !== null) return { text: await download(url, fetch, signal, grow), url };
  if (spec.length > MAX_BYTES)
    throw new DocumentFault(`the given text has more than ${MAX_BYTES} characters`);
  grow(spec.length);
  return { text: spec, url };
}

async function download(
  url: string,
  fetch: OutboundFetch,
  signal: AbortSignal,
  grow: (length: number) => void,
): Promise<string> {
  const response = await fetch(url, { headers: { accept: ACCEPT }, signal });
  if (!response.ok) {
    response.body?.cancel().catch(() => {}); // nobody reads it, so it does not matter if it is cut off
    throw new ConnectorError("refused", `The spec's URL answered with status ${response.status}.`);
  }
  const bytes = await readCapped(response, MAX_BYTES, signal, grow);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new DocumentFault("the answer of the spec's URL is not UTF-8 text", { cause: error });
  }
}
