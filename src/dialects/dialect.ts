import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { Problem } from "../base/errors.ts";
import type { Detail } from "../ledger/entry.ts";
import type { Dialect } from "../models/native.ts";
import type { Tx } from "../store/db.ts";
import type { Translation, VectorTranslation } from "./translation/translation.ts";

/** What the cost of a request is estimated from. */
export interface RequestSize {
  /** Bytes of the whole request, and of the texts in it. */
  readonly bytes: number;
  readonly textBytes: number;
  /** How many answers are asked for. */
  readonly answers: number;
  /** The most tokens that the request allows for each answer; 0 if it does not say. */
  readonly mostTokens: number;
}

/** A client's request, as far as it is looked at. */
export interface DialectRequest {
  /** As the client names it: a model, an alias or a tier. */
  readonly model: string;
  readonly isStream: boolean;
  /** What its cost is estimated from. */
  readonly size: RequestSize;
  /**
   * The same bytes for the provider, with the model's own name and what metering needs.
   * @param id the model as the configuration names it
   */
  bytesFor(model: string, id: string): Uint8Array<ArrayBuffer>;
  /** Reads the events of a streamed answer. */
  readStream(): StreamReader;
  /** A whole answer as the client has asked for it. Default: as received. */
  answer?(received: Buffer<ArrayBuffer>): Buffer<ArrayBuffer>;
  /** What is kept of a whole answer as evidence. Default: all of it. */
  evidence?(answer: string): string;
  /** What its entries say about it besides its attempts. */
  readonly detail?: Detail;
  /**
   * The request as it is translated for a model. Default: as parsed.
   * @param id the model as the configuration names it
   */
  valueFor?(id: string): unknown;
  /** Called with the seq of each attempt's intent. The first is the one with the request's text. */
  begun?(intent: number): void;
  /** Writes what the client may come back to, in the transaction of the outcome. */
  readonly keep?: ((tx: Tx, answer: KeptAnswer) => Promise<void>) | undefined;
}

/** An answer that a client may come back to. */
export interface KeptAnswer {
  readonly workspaceId: number;
  readonly agentId: number | null;
  /** The model that has answered. */
  readonly model: string;
  /** The seq of the outcome, whose text the answer is. */
  readonly outcome: number;
  readonly output: string;
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

/** What was received of a streamed answer. */
export interface ReceivedAnswer {
  readonly text: string;
  /** Whether the answer has ended by itself. */
  readonly isWhole: boolean;
  /** Bytes of the texts in it. */
  readonly textBytes: number;
}

/** Reads a streamed answer while it passes. */
export interface StreamReader {
  /** Whether these bytes may contain an event that `read` must see. All others pass unread. */
  matters(events: Buffer): boolean;
  read(event: Buffer): EventFate;
  /** The usage reported so far. */
  readonly usage: LanguageModelV4Usage | null;
  /**
   * Puts the answer together as JSON, for the evidence, or returns its events if they say more than that.
   * @param events all that was received
   * @param pause MUST be awaited after each part of the work: others share the event loop
   */
  answerOf(events: Buffer, pause: Pause): Promise<ReceivedAnswer>;
  /**
   * The bytes that end a stream that broke, if they depend on what it contained. Called after `answerOf`. Default: those
   * of the dialect.
   */
  errorEvents?(problem: Problem, requestId: string): string;
}

/** What a whole answer has used. */
export interface AnswerUsage {
  /** Null if it reports nothing, or is not JSON: its usage is then estimated. */
  readonly reported: LanguageModelV4Usage | null;
  /** Bytes of the texts that the model has written. Undefined if they are unknown, or if it writes none. */
  readonly textBytes: number | undefined;
}

/** An API that clients know, and how its requests and answers are read. */
export interface DialectApi {
  readonly dialect: Dialect;
  /** Whether answers are made of tokens, which can be estimated from their length if the provider does not count. */
  readonly answersInTokens: boolean;
  /** For providers that speak another dialect. */
  readonly translation?: Translation;
  /** The same for a dialect whose answers are vectors. */
  readonly vectors?: VectorTranslation;
  /**
   * Reads a request.
   * @param value the bytes as parsed
   * @throws Problem 400 `invalid_json`, 422 `validation_failed`
   */
  read(bytes: Uint8Array, value: unknown): DialectRequest;
  usageOf(answer: string): AnswerUsage;
  /** The client's headers that pass on. */
  passedHeaders(headers: Headers): Record<string, string>;
  /** The body of an error response. */
  errorBody(problem: Problem, requestId: string): object;
  /** The bytes that end a stream that broke. */
  errorEvent(problem: Problem, requestId: string): string;
}
