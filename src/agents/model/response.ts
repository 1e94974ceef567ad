import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { parseJson } from "../../base/json-limits.ts";
import { AnswerTooLarge } from "../errors.ts";
import type { JsonValue, ToolCall } from "../message.ts";
import type { RunState } from "../run.ts";
import { textBytes } from "./request-size.ts";

export type StreamPart = LanguageModelV3StreamPart | LanguageModelV4StreamPart;
type CollectedToolCall = Extract<StreamPart, { type: "tool-call" }>;

/** The parts of a requested call that are kept. All of them count as output. */
interface ReceivedCall extends Pick<CollectedToolCall, "toolCallId" | "toolName" | "input"> {
  readonly signatures: ToolCall["signatures"];
}

/**
 * The maximum number of tool calls in one answer. Sensible models request ten or twenty at once. The SDK's work grows
 * with the square of the number of calls started: 64,000 of them blocked the process for half a minute.
 */
export const MAX_TOOL_CALLS = 128;

/**
 * The maximum number of empty parts in one answer. The output limit counts characters, so a stream of empty parts
 * would never end.
 */
export const MAX_EMPTY_PARTS = 100_000;

/** Collects the parts of one answer in linear time: they are joined only once. */
export class ResponseCollector {
  readonly #run: RunState;
  readonly #text: string[] = [];
  readonly #calls: ReceivedCall[] = [];
  /** Ids of the tool calls that have begun. */
  readonly #begun = new Set<string>();
  #emptyParts = 0;
  #joined: string | undefined;
  #reasoningBytes = 0;
  #argumentBytes = 0;
  #callBytes = 0;

  constructor(run: RunState) {
    this.#run = run;
  }

  /**
   * Adds a part and returns the text to pass on, if any.
   * @throws AnswerTooLarge for too many tool calls or empty parts; RunFailure if the run's output exceeds its limit
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
        this.#receiveCall(part);
        return undefined;
      default:
        this.#receive(0);
        return undefined;
    }
  }

  #receiveCall(part: CollectedToolCall): void {
    const { toolCallId, toolName, input } = part;
    this.#receive(toolCallId.length + toolName.length + input.length);
    this.#begun.add(toolCallId);
    // Tools that the provider runs itself are not run here.
    if (part.providerExecuted !== true) {
      const signatures = signaturesOf(part);
      if (signatures) this.#receive(lengthOf(signatures));
      this.#calls.push({ toolCallId, toolName, input, signatures });
      this.#callBytes += textBytes(input);
    }
    this.#limitCalls();
  }

  #receive(characters: number): void {
    if (characters > 0) this.#run.receive(characters);
    else if (++this.#emptyParts > MAX_EMPTY_PARTS)
      throw new AnswerTooLarge("The model's answer did not end.");
  }

  /**
   * Counts calls when they begin, because an unfinished call also takes memory. Several calls may have the same id.
   */
  #limitCalls(): void {
    if (Math.max(this.#begun.size, this.#calls.length) <= MAX_TOOL_CALLS) return;
    throw new AnswerTooLarge(`The model requested more than ${MAX_TOOL_CALLS} tool calls at once.`);
  }

  get hasText(): boolean {
    return this.#text.length > 0;
  }

  /** Complete only after the stream has been read. */
  get text(): string {
    this.#joined ??= this.#text.join("");
    return this.#joined;
  }

  /** Size of everything generated, for an estimate. Arguments arrive as deltas, as a whole, or both. */
  get bytes(): number {
    return textBytes(this.text) + this.#reasoningBytes + Math.max(this.#argumentBytes, this.#callBytes);
  }

  /** The calls with ids of this run. MUST be called only once, since it generates new ids. */
  toolCalls(): readonly ToolCall[] {
    return this.#calls.map(({ toolCallId, toolName, input, signatures }) => ({
      id: this.#run.callId(toolCallId),
      tool: this.#run.options.toolbox.fromProvider(toolName),
      arguments: parseArguments(input),
      ...(signatures === undefined ? {} : { signatures }),
    }));
  }
}

function lengthOf(signatures: Readonly<Record<string, string>>): number {
  return Object.entries(signatures).reduce((sum, [name, text]) => sum + name.length + text.length, 0);
}

/**
 * Arguments that cannot be parsed, are nested too deeply or have too many members remain text. The call is then
 * refused, and the model is told why. Some providers send no arguments for a tool without parameters.
 */
function parseArguments(text: string): JsonValue {
  if (text.trim() === "") return {};
  try {
    return parseJson(text) as JsonValue;
  } catch {
    return text;
  }
}

/**
 * Only signatures are kept. Other metadata (OpenAI's item ids) refers to reasoning that is not kept, and would be
 * rejected without it.
 */
function signaturesOf({ providerMetadata }: CollectedToolCall): ToolCall["signatures"] {
  if (providerMetadata === undefined) return undefined;
  const found: [string, string][] = [];
  for (const [provider, metadata] of Object.entries(providerMetadata)) {
    const signature = metadata.thoughtSignature;
    if (typeof signature === "string") found.push([provider, signature]);
  }
  return found.length === 0 ? undefined : Object.fromEntries(found);
}
