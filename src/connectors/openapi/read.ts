import type { OutboundFetch } from "../outbound/fetch.ts";
import { readCapped } from "../outbound/read.ts";
import { ConnectorError } from "../source.ts";
import { DocumentFault } from "./fault.ts";

const MAX_BYTES = 10 * 1_024 * 1_024;
const ACCEPT = "application/vnd.oai.openapi+json, application/json, application/yaml, text/yaml, */*;q=0.5";

/** The text of an OpenAPI document, before it is read. */
export interface DocumentText {
  readonly text: string;
  /** The URL that it was fetched from. */
  readonly url: string | null;
}

/**
 * The text of a document that is given as a URL or as text.
 * @throws DocumentFault if it is too long or not a text; ConnectorError or what `fetch` throws if it cannot be
 *   fetched
 */
export async function fetchDocument(
  spec: string,
  fetch: OutboundFetch,
  signal: AbortSignal,
): Promise<DocumentText> {
  const url = /^https?:\/\/\S+$/i.test(spec.trim()) ? spec.trim() : null;
  if (url !== null) return { text: await download(url, fetch, signal), url };
  if (spec.length > MAX_BYTES)
    throw new DocumentFault(`the given text has more than ${MAX_BYTES} characters`);
  return { text: spec, url };
}

async function download(url: string, fetch: OutboundFetch, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { headers: { accept: ACCEPT }, signal });
  if (!response.ok) {
    response.body?.cancel().catch(() => {}); // nobody reads it, so it does not matter if it breaks off
    throw new ConnectorError("refused", `The spec's URL answered with status ${response.status}.`);
  }
  const bytes = await readCapped(response, MAX_BYTES, signal);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new DocumentFault("the answer of the spec's URL is not UTF-8 text", { cause: error });
  }
}
