import type { KeptTool } from "../../tools/kept-tool.ts";
import type { ReservedName } from "../operations/parameters.ts";

/** A document to read in another process. */
export interface ApiDocumentRequest {
  /** JSON or YAML. */
  readonly text: string;
  /** The URL that it was fetched from; relative servers are resolved against it. */
  readonly url: string | null;
  /** Whether `base_url` replaces all servers that the document names. */
  readonly hasBase: boolean;
  readonly reserved: ReservedName | null;
  /** The connector's secrets, which are masked in all text from the document. */
  readonly secrets: readonly string[];
}

/** The tools of a document. */
export interface ApiListing {
  readonly tools: readonly KeptTool[];
  /** The document's own server; null if `base_url` replaces it. */
  readonly server: string | null;
  /** The first of the operations that cannot be offered, each with the reason. Not masked. */
  readonly leftOut: readonly string[];
  readonly leftOutCount: number;
}

/** Why a document cannot be used, as the end of a sentence. Not masked. */
export interface ApiDocumentFault {
  readonly fault: string;
}

export type ApiReading = ApiListing | ApiDocumentFault;

/** Reads documents. @throws DocumentFault, ConnectorError `unreachable` if it cannot be read now */
export type ReadApi = (request: ApiDocumentRequest, signal: AbortSignal) => Promise<ApiReading>;
