import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { Problem } from "../base/errors.ts";
import type { Dialect } from "../models/native.ts";

/** A client's request, as far as it is looked at. */
export interface DialectRequest {
  /** As the client names it: a model, an alias or a tier. */
  readonly model: string;
  readonly isStream: boolean;
  /** Bytes of the whole request, and of the texts in it. */
  readonly bytes: number;
  readonly textBytes: number;
  /** The same bytes for the provider, with the model's own name and what metering needs. */
  bytesFor(model: string): Uint8Array<ArrayBuffer>;
  /** Reads the events of a streamed answer. */
  readStream(): StreamReader;
}

/** What to do with an event of a streamed answer. */
export type EventFate =
  | "pass"
  /** Only for metering: not sent to the client. */
  | "drop"
  /** The last event. Sent once the outcome is on disk. */
  | "end"
  /** The provider reports that it failed. */
  | "error";

/** Undefined if there is no need to wait. */
export type Pause = (bytes: number) => Promise<void> | undefined;

/** Reads a streamed answer while it passes. */
export interface StreamReader {
  /** Whether these bytes may contain an event that `read` must see. All others pass unread. */
  matters(events: Buffer): boolean;
  read(event: Buffer): EventFate;
  /** The usage reported so far. */
  readonly usage: LanguageModelV4Usage | null;
  /**
   * Puts the whole answer together as JSON, for the evidence. Null if it has not ended yet.
   * @param events all that was received
   * @param pause MUST be awaited after each part of the work: others share the event loop
   */
  answerOf(events: Buffer, pause: Pause): Promise<string | null>;
}

/** An API that clients know, and how its requests and answers are read. */
export interface DialectApi {
  readonly dialect: Dialect;
  /**
   * Reads a request.
   * @param value the bytes as parsed
   * @throws Problem 400 `invalid_json`, 422 `validation_failed`
   */
  read(bytes: Uint8Array, value: unknown): DialectRequest;
  /** The usage that a whole answer reports; null if it reports none, or is not JSON: its usage is then estimated. */
  usageOf(answer: string): LanguageModelV4Usage | null;
  /** The client's headers that pass on. */
  passedHeaders(headers: Headers): Record<string, string>;
  /** The body of an error response. */
  errorBody(problem: Problem, requestId: string): object;
  /** The bytes that end a stream that broke. */
  errorEvent(problem: Problem, requestId: string): string;
}
