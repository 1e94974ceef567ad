import type { OutboundFetch } from "../outbound/fetch.ts";
import { readCapped } from "../outbound/read.ts";
import { ConnectorError } from "../source.ts";
import { checkDocument } from "./check.ts";
import { parseText } from "./document.ts";
import { DocumentFault } from "./fault.ts";
import type { JsonMap } from "./json.ts";

const MAX_BYTES = 10 * 1_024 * 1_024;
const ACCEPT = "application/vnd.oai.openapi+json, application/json, application/yaml, text/yaml, */*;q=0.5";

/** An OpenAPI document that was checked as a whole; its operations are not yet. */
export interface ApiDocument {
  readonly root: JsonMap;
  /** Where it was fetched; relative servers are resolved against it. */
  readonly url: string | null;
}

/**
 * Reads a document that is given by its URL, as a text or as it is.
 * @throws DocumentFault for what it holds, ConnectorError or what `fetch` throws where it cannot be had
 */
export async function readDocument(
  spec: string | JsonMap,
  fetch: OutboundFetch,
  signal: AbortSignal,
): Promise<ApiDocument> {
  if (typeof spec !== "string")
    return { root: inDocument("the given value", () => checkDocument(spec)), url: null };
  const url = /^https?:\/\/\S+$/i.test(spec.trim()) ? spec.trim() : null;
  if (url === null) {
    const tooLong = spec.length > MAX_BYTES;
    if (tooLong) throw new DocumentFault(`the given text has more than ${MAX_BYTES} characters`);
    return { root: inDocument("the given text", () => checkDocument(parseText(spec))), url };
  }
  const text = await download(url, fetch, signal);
  return { root: inDocument("what the spec's URL answered", () => checkDocument(parseText(text))), url };
}

async function download(url: string, fetch: OutboundFetch, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { headers: { accept: ACCEPT }, signal });
  if (!response.ok) {
    response.body?.cancel().catch(() => {}); // nobody reads it, nor cares whether it breaks off
    throw new ConnectorError("refused", `The spec's URL answered with status ${response.status}.`);
  }
  const bytes = await readCapped(response, MAX_BYTES, signal);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw new DocumentFault("what the spec's URL answered is not UTF-8 text", { cause: error });
  }
}

function inDocument<Value>(what: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof DocumentFault)) throw error;
    throw new DocumentFault(`${what} is no OpenAPI 3.0 or 3.1 document: ${error.message}`, { cause: error });
  }
}
