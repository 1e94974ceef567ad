import type { FakeModelRequest } from "../fake-model.ts";
import { lastUserText } from "./request.ts";

export interface UsageScript {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens: number };
  readonly completion_tokens_details?: { readonly reasoning_tokens: number };
}

export interface ToolCallScript {
  readonly name: string;
  /** An object is sent as JSON; a string is sent as it is, malformed or not. */
  readonly arguments: object | string;
}

/** What the fake does with one call. Everything is optional; an empty object answers with an empty text. */
export interface Behaviour {
  /** The text, one element for each streamed chunk. */
  readonly chunks?: readonly string[];
  /** Tool calls, after the text. The finish reason is then `tool_calls`. */
  readonly toolCalls?: readonly ToolCallScript[];
  /** Default: counted from the request's words and the answer's chunks. Null: never sent, even on request. */
  readonly usage?: UsageScript | null;
  /** Milliseconds before anything is sent, including headers. */
  readonly firstDelayMs?: number;
  /** Milliseconds between chunks. */
  readonly delayMs?: number;
  /** Awaited after the text and the tool calls, before the finish reason or the cut. */
  readonly gate?: Promise<unknown>;
  /** Any status except 200 is answered with an error in JSON. */
  readonly status?: number;
  /** Headers added to the response. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Takes the call and never answers. */
  readonly hang?: true;
  /** Falls silent after this many chunks, and leaves the connection open. */
  readonly hangAfter?: number;
  /** Breaks the connection after this many chunks. The caller sees a network error, not an end. */
  readonly cutAfter?: number;
  /** Ends the stream cleanly, but without finish reason, usage and `[DONE]`. */
  readonly noFinish?: true;
  /** Sent instead of all chunks, byte for byte, in separate writes `delayMs` (default 5) apart. A `gate` holds up the second. */
  readonly rawBytes?: readonly Uint8Array[];
}

/** Repeats the user's text, one word per chunk. */
export function echo(request: FakeModelRequest): Behaviour {
  return { chunks: `You said: ${lastUserText(request.body)}`.split(/(?<= )/) };
}
