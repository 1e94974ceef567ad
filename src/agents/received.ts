import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { parseJson } from "../base/nesting.ts";
import { AnswerTooLarge } from "./errors.ts";
import type { JsonValue, ToolCall } from "./message.ts";
import { textBytes } from "./request-size.ts";
import type { Run } from "./run.ts";

export type StreamPart = LanguageModelV3StreamPart | LanguageModelV4StreamPart;
type ToolCallPart = Extract<StreamPart, { type: "tool-call" }>;

/**
 * Tool calls of one answer. Models that are in control ask for ten or twenty at once. The SDK's work grows with the square of
 * the calls that have begun: 64,000 of them held up the process for half a minute.
 */
export const MAX_TOOL_CALLS = 128;

/** Parts of one answer that carry nothing: a stream of them would go on for ever, since the output limit counts characters. */
const MAX_EMPTY_PARTS = 100_000;

/** What has come of one answer. Linear in its length: parts are collected and joined once. */
export class Received {
  readonly #run: Run;
  readonly #text: string[] = [];
  readonly #calls: ToolCallPart[] = [];
  /** Ids of the tool calls that have begun. */
  readonly #begun = new Set<string>();
  #emptyParts = 0;
  #joined: string | undefined;
  #reasoningBytes = 0;
  #argumentBytes = 0;
  #callBytes = 0;

  constructor(run: Run) {
    this.#run = run;
  }

  /**
   * Takes one part in; text to be passed on is returned.
   * @throws AnswerTooLarge for too many tool calls or empty parts; RunFailure when the run's output exceeds its limit
   */
  add(part: StreamPart): string | undefined {
    switch (part.type) {
      case "text-delta":
        this.#receive(part.delta.length);
        if (part.delta === "") return undefined;
        this.#text.push(part.delta);
        return part.delta;
      case "reasoning-delta":
        this.#receive(part.delta.length);
        this.#reasoningBytes += textBytes(part.delta);
        return undefined;
      case "tool-input-start":
        this.#receive(part.id.length + part.toolName.length);
        this.#begun.add(part.id);
        this.#limitCalls();
        return undefined;
      case "tool-input-delta":
        this.#receive(part.delta.length);
        this.#argumentBytes += textBytes(part.delta);
        return undefined;
      case "tool-call":
        this.#receive(part.toolCallId.length + part.toolName.length + part.input.length);
        this.#begun.add(part.toolCallId);
        // What the provider runs itself is not ours to run.
        if (part.providerExecuted !== true) {
          this.#calls.push(part);
          this.#callBytes += textBytes(part.input);
        }
        this.#limitCalls();
        return undefined;
      default:
        this.#receive(0);
        return undefined;
    }
  }

  #receive(characters: number): void {
    if (characters > 0) this.#run.receive(characters);
    else if (++this.#emptyParts > MAX_EMPTY_PARTS) throw new AnswerTooLarge("The model's answer has no end.");
  }

  /** Calls are counted when they begin: one that never ends takes memory as well. Several may come under one id. */
  #limitCalls(): void {
    if (Math.max(this.#begun.size, this.#calls.length) <= MAX_TOOL_CALLS) return;
    throw new AnswerTooLarge(`The model asked for more than ${MAX_TOOL_CALLS} tools at once.`);
  }

  get hasText(): boolean {
    return this.#text.length > 0;
  }

  /** Complete once the stream is read no more. */
  get text(): string {
    this.#joined ??= this.#text.join("");
    return this.#joined;
  }

  /** Everything generated, for an estimate: arguments come as deltas, as a whole, or both. */
  get bytes(): number {
    return textBytes(this.text) + this.#reasoningBytes + Math.max(this.#argumentBytes, this.#callBytes);
  }

  /** The calls under ids of this run. To be asked once: each time gives new ids. */
  toolCalls(): readonly ToolCall[] {
    return this.#calls.map((part) => {
      const signatures = signaturesOf(part);
      return {
        id: this.#run.callId(part.toolCallId),
        tool: this.#run.settings.toolbox.fromProvider(part.toolName),
        arguments: parseArguments(part.input),
        ...(signatures === undefined ? {} : { signatures }),
      };
    });
  }
}

/**
 * What cannot be read, or is nested too deeply or too wide to be read, stays text: the call is refused for it, and the model is told.
 * Some providers send nothing for a tool without parameters.
 */
function parseArguments(text: string): JsonValue {
  if (text.trim() === "") return {};
  try {
    return parseJson(text) as JsonValue;
  } catch {
    return text;
  }
}

/** The rest of the metadata (OpenAI's item ids) points at reasoning that is not kept, and would be refused alone. */
function signaturesOf({ providerMetadata }: ToolCallPart): Record<string, string> | undefined {
  if (providerMetadata === undefined) return undefined;
  const found: [string, string][] = [];
  for (const [provider, metadata] of Object.entries(providerMetadata)) {
    const signature = metadata.thoughtSignature;
    if (typeof signature === "string") found.push([provider, signature]);
  }
  return found.length === 0 ? undefined : Object.fromEntries(found);
}
