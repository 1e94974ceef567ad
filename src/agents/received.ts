import type { LanguageModelV3StreamPart, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { parseJson } from "../base/nesting.ts";
import { RunFailure } from "./errors.ts";
import type { JsonValue, ToolCall } from "./message.ts";
import { textBytes } from "./request-size.ts";
import type { Run } from "./run.ts";

export type StreamPart = LanguageModelV3StreamPart | LanguageModelV4StreamPart;
type ToolCallPart = Extract<StreamPart, { type: "tool-call" }>;

/** A model that asks for more calls than this in one answer is out of control. */
const MAX_TOOL_CALLS = 128;

/** What has come of one answer. Linear in its length: parts are collected and joined once. */
export class Received {
  readonly #run: Run;
  readonly #text: string[] = [];
  readonly #calls: ToolCallPart[] = [];
  #joined: string | undefined;
  #reasoningBytes = 0;
  #argumentBytes = 0;
  #callBytes = 0;

  constructor(run: Run) {
    this.#run = run;
  }

  /** Takes one part in; text to be passed on is returned. @throws RunFailure when a cap is exceeded. */
  add(part: StreamPart): string | undefined {
    switch (part.type) {
      case "text-delta":
        if (part.delta === "") return undefined;
        this.#run.receive(part.delta.length);
        this.#text.push(part.delta);
        return part.delta;
      case "reasoning-delta":
        this.#run.receive(part.delta.length);
        this.#reasoningBytes += textBytes(part.delta);
        return undefined;
      case "tool-input-delta":
        this.#run.receive(part.delta.length);
        this.#argumentBytes += textBytes(part.delta);
        return undefined;
      case "tool-call":
        // What the provider runs itself is not ours to run.
        if (part.providerExecuted === true) return undefined;
        this.#run.receive(part.input.length);
        this.#calls.push(part);
        this.#callBytes += textBytes(part.input);
        if (this.#calls.length > MAX_TOOL_CALLS) {
          throw new RunFailure("internal", `The model asked for more than ${MAX_TOOL_CALLS} tools at once.`);
        }
        return undefined;
      default:
        return undefined;
    }
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
