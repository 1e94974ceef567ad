import type { FakeModelRequest } from "../fake-model.ts";
import { lastUserText } from "./request.ts";

export interface UsageScript {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

export interface ToolCallScript {
  readonly name: string;
  /** An object is sent as JSON; a string is sent as it is, malformed or not. */
  readonly arguments: object | string;
}

/** What the fake does with one call. Everything is optional; nothing at all answers an empty text. */
export interface Behaviour {
  /** The text, one streamed chunk each. */
  readonly chunks?: readonly string[];
  /** Tool calls, after the text. The finish reason is then `tool_calls`. */
  readonly toolCalls?: readonly ToolCallScript[];
  /** Default: counted from the words asked and the chunks answered. Null: never sent, even when asked for. */
  readonly usage?: UsageScript | null;
  /** Milliseconds before anything is sent, headers too. */
  readonly firstDelayMs?: number;
  /** Milliseconds between chunks. */
  readonly delayMs?: number;
  /** Awaited after the text and the tool calls, before the finish reason. */
  readonly gate?: Promise<unknown>;
  /** Anything but 200 is answered with an error in JSON. */
  readonly status?: number;
  /** Added to the response. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Takes the call and never answers. */
  readonly hang?: true;
  /** Falls silent after so many chunks, the connection open. */
  readonly hangAfter?: number;
  /** Breaks the connection after so many chunks: the caller sees a network error, not an end. */
  readonly cutAfter?: number;
  /** Ends the stream cleanly, but without a finish reason, usage and `[DONE]`. */
  readonly noFinish?: true;
  /** Sent instead of all chunks, byte for byte, each in a write of its own `delayMs` (default 5) apart. */
  readonly rawBytes?: readonly Uint8Array[];
}

/** Says back what the user said, a word a chunk. */
export function echo(request: FakeModelRequest): Behaviour {
  return { chunks: `You said: ${lastUserText(request.body)}`.split(/(?<= )/) };
}
