import type { Problem } from "../base/errors.ts";
import type { Detail } from "../ledger/entry.ts";
import type { Admit } from "../ledger/ledger.ts";
import type { DialectApi, DialectRequest } from "./dialect.ts";

/** A client's request for a model. */
export interface ClientRequest {
  readonly api: Omit<DialectApi, "read">;
  /** The request as read. Streams do not retain it. */
  readonly request: DialectRequest;
  /**
   * Adds what the request refers to. Reading that is expensive, so this is called only once the call is counted and
   * has a slot. Undefined if the request refers to nothing.
   */
  readonly resolve?: (() => Promise<DialectRequest>) | undefined;
  readonly bytes: Uint8Array;
  /** The parsed bytes. */
  readonly value: unknown;
  readonly headers: Headers;
  /** The part of the client's query that is passed on, including its question mark; may be empty. */
  readonly query: string;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Called with the refusal if the request is abandoned to free its memory. */
  onRefused(refused: (problem: Problem) => void): void;
  /** Keeps the memory of the request counted until the returned function is called. */
  keep(): () => void;
  /**
   * Set if the call was dispatched earlier: it already has a slot, and the entry that dispatched it refers to the
   * request. The value is the detail of the call's own entries.
   */
  readonly dispatched?: Detail;
  /** Called in the transaction of each intent. Throws if the call must not be made after all. */
  readonly admit?: Admit;
}

/** An answer for a client. MUST be sent, or its body cancelled. */
export interface ModelAnswer {
  /** Never the provider's own content type: a browser must not show an answer as a page. */
  readonly contentType: "application/json" | "text/event-stream";
  /** The model that answered. */
  readonly model: string;
  /** The seq of the intent of the answered request. */
  readonly intent: number;
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
}
