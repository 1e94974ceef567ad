import type { KeptTool } from "../../kept-tool.ts";
import type { ReservedName } from "../operations/parameters.ts";

/** A document to be read in a process of its own. */
export interface ApiDocumentRequest {
  /** JSON or YAML. */
  readonly text: string;
  /** Where it was fetched; relative servers are resolved against it. */
  readonly url: string | null;
  /** `base_url` stands for all servers that it names. */
  readonly hasBase: boolean;
  readonly reserved: ReservedName | null;
  /** Of the connector: they are masked in everything that the document says. */
  readonly secrets: readonly string[];
}

/** What a document offers. */
export interface ApiListing {
  readonly tools: readonly KeptTool[];
  /** The document's own server; null if `base_url` stands for it. */
  readonly server: string | null;
  /** Operations that cannot be offered, each with the reason; the first of them. Not masked. */
  readonly leftOut: readonly string[];
  readonly leftOutCount: number;
}

/** Why a document cannot be used: the end of a sentence. Not masked. */
export interface ApiDocumentFault {
  readonly fault: string;
}

export type ApiReading = ApiListing | ApiDocumentFault;

/** Reads documents. @throws DocumentFault, ConnectorError `unreachable` if it cannot be read now */
export type ReadApi = (request: ApiDocumentRequest, signal: AbortSignal) => Promise<ApiReading>;
