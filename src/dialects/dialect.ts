import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { Problem } from "../base/errors.ts";
import type { Detail } from "../ledger/entry.ts";
import type { Dialect } from "../models/native.ts";
import type { Tx } from "../store/db.ts";
import type { Translation, VectorTranslation } from "./translation/translation.ts";

/** The numbers that a request's cost is estimated from. */
export interface RequestSize {
  /**
   * Size in bytes of the whole request with everything that it refers to. A file that it only names counts
   * NAMED_FILE_BYTES. The cost of the call is reserved by it.
   */
  readonly bytes: number;
  /** The bytes of it that a model reads. A call without a count from its provider is charged by them. */
  readonly contentBytes: number;
  /** The bytes of it that are certainly text. A provider's count that is too low for them is not believed. */
  readonly textBytes: number;
  /** How many answers are requested. */
  readonly answers: number;
  /** The maximum tokens that the request allows for each answer; 0 if it sets no limit. */
  readonly mostTokens: number;
}

/** A client's request, reduced to what Gatehouse reads of it. */
export interface DialectRequest {
  /** The model, alias or tier that the client named. */
  readonly model: string;
  readonly isStream: boolean;
  /** The size from which its cost is estimated. */
  readonly size: RequestSize;
  /**
   * The same bytes for the provider, with the model's own name and the options that metering needs.
   * @param id the model as the configuration names it
   */
  bytesFor(model: string, id: string): Uint8Array<ArrayBuffer>;
  /** Reads the events of a streamed answer. */
  readStream(): StreamReader;
  /** A whole answer in the form that the client requested. Default: as received. */
  answer?(received: Buffer<ArrayBuffer>): Buffer<ArrayBuffer>;
  /** The part of a whole answer that is kept as evidence. Default: all of it. */
  evidence?(answer: string): string;
  /** Details for the request's ledger entries, in addition to the details of its attempts. */
  readonly detail?: Detail;
  /**
   * The request to translate for a model. Default: as parsed.
   * @param id the model as the configuration names it
   */
  valueFor?(id: string): unknown;
  /** Called with the seq of each attempt's intent. The first intent has the request's text. */
  begun?(intent: number): void;
  /** Writes the answer's row, in the transaction of the outcome, if the client may refer to it later. */
  readonly keep?: ((tx: Tx, answer: StoredAnswer) => Promise<void>) | undefined;
}

/** An answer that a client may refer to later. */
export interface StoredAnswer {
  readonly workspaceId: number;
  readonly agentId: number | null;
  /** The model that answered. */
  readonly model: string;
  /** The seq of the outcome whose text is the answer. */
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

/** The part of a streamed answer that was received. */
export interface ReceivedAnswer {
  readonly text: string;
  /** Whether the answer ended normally. */
  readonly isWhole: boolean;
  /** Size in bytes of its text. */
  readonly textBytes: number;
}

/** Reads a streamed answer while it passes. */
export interface StreamReader {
  /**
   * A position in the first event that `read` must see; -1 if there is none. All events before it pass unread.
   */
  firstToRead(events: Buffer): number;
  read(event: Buffer): EventFate;
  /** The usage reported so far. */
  readonly usage: LanguageModelV4Usage | null;
  /**
   * Merges the answer into JSON for the evidence, or returns its events if they contain more.
   * @param events everything that was received
   * @param pause MUST be awaited after each part of the work: other calls share the event loop
   */
  answerOf(events: Buffer, pause: Pause): Promise<ReceivedAnswer>;
  /**
   * The bytes that end a broken stream, if they depend on its content. Called after `answerOf`. Default: the
   * dialect's usual bytes.
   */
  errorEvents?(problem: Problem, requestId: string): string;
}

/** What a whole answer reports. */
export interface AnswerSummary {
  /** Whether it is an error although its status is 200. */
  readonly isError: boolean;
  /** Null if it reports nothing, or is not JSON: its usage is then estimated. */
  readonly reported: LanguageModelV4Usage | null;
  /** Size in bytes of the text that the model wrote. Undefined if it is unknown, or if the model writes none. */
  readonly textBytes: number | undefined;
}

/** An API that clients know: how its requests and answers are read. */
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
  summarize(answer: string): AnswerSummary;
  /** The client's headers that are passed on. */
  passedHeaders(headers: Headers): Record<string, string>;
  /** The body of an error response. */
  errorBody(problem: Problem, requestId: string): object;
  /** The bytes that end a broken stream. */
  errorEvent(problem: Problem, requestId: string): string;
}
