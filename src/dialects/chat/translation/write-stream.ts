import type { LanguageModelV4StreamPart, SharedV4ProviderMetadata } from "@ai-sdk/provider";
import { isSigned } from "../../translation/signatures.ts";
import type { AnswerHead, TranslationTarget } from "../../translation/translation.ts";
import { SignedThoughts, toolCallExtra } from "./signed-thoughts.ts";
import {
  annotationsOf,
  finishReasonOf,
  sourceAnnotations,
  unspokenFile,
  usageMembers,
} from "./write-parts.ts";

type Part<Type extends LanguageModelV4StreamPart["type"]> = Extract<
  LanguageModelV4StreamPart,
  { type: Type }
>;

/** A tool call in progress. */
interface BegunCall {
  readonly index: number;
  /** Characters of its arguments sent so far. */
  sent: number;
  isSigned: boolean;
}

/** Writes the chunks of a streamed chat completion. */
export class ChunkWriter {
  readonly #target: TranslationTarget;
  readonly #head: object;
  readonly #wantsUsage: boolean;
  readonly #calls = new Map<string, BegunCall>();
  /** The provider runs these itself. */
  readonly #ownCalls = new Set<string>();
  readonly #thoughts = new SignedThoughts();
  #hasBegun = false;
  /** The block of reasoning that was written last. */
  #thought: string | null = null;

  /** @param wantsUsage whether the client requested the usage chunk */
  constructor(target: TranslationTarget, { id, created, model }: AnswerHead, wantsUsage: boolean) {
    this.#target = target;
    this.#head = { id: `chatcmpl-${id}`, object: "chat.completion.chunk", created, model };
    this.#wantsUsage = wantsUsage;
  }

  /** The events that a part produces; empty if none. */
  part(part: LanguageModelV4StreamPart): string {
    switch (part.type) {
      case "text-delta":
        return part.delta === "" ? "" : this.#delta({ content: part.delta });
      case "text-end": {
        const annotations = annotationsOf(part.citations ?? []);
        return annotations.length === 0 ? "" : this.#delta({ annotations });
      }
      case "source": {
        const annotations = sourceAnnotations(part);
        return annotations.length === 0 ? "" : this.#delta({ annotations });
      }
      case "reasoning-start":
      case "reasoning-end":
        this.#thoughts.add(part.id, "", part.providerMetadata);
        return "";
      case "reasoning-delta":
        this.#thoughts.add(part.id, part.delta, part.providerMetadata);
        return this.#reasoning(part);
      case "tool-input-start":
        if (part.providerExecuted !== true)
          return this.#callBegins(part.id, part.toolName, "", part.providerMetadata);
        this.#ownCalls.add(part.id);
        return "";
      case "tool-input-delta":
        return this.#callGoesOn(part.id, part.delta);
      case "tool-call":
        return this.#call(part);
      case "file":
        throw unspokenFile();
      case "error":
        throw part.error;
      case "finish":
        return this.#finish(part);
      default:
        return "";
    }
  }

  #reasoning({ id, delta }: Part<"reasoning-delta">): string {
    if (delta === "") return "";
    const isNext = this.#thought !== null && this.#thought !== id;
    this.#thought = id;
    return this.#delta({ reasoning_content: isNext ? `\n${delta}` : delta });
  }

  #callBegins(
    id: string,
    name: string,
    input: string,
    metadata: SharedV4ProviderMetadata | undefined,
  ): string {
    const index = this.#calls.size;
    this.#calls.set(id, { index, sent: input.length, isSigned: isSigned(metadata) });
    const called = { name, arguments: input };
    const extra = toolCallExtra(this.#target, metadata, this.#thoughts.take(this.#target));
    return this.#delta({ tool_calls: [{ index, id, type: "function", function: called, ...extra }] });
  }

  #callGoesOn(id: string, delta: string): string {
    const call = this.#calls.get(id);
    if (!call || delta === "") return "";
    call.sent += delta.length;
    return this.#delta({ tool_calls: [{ index: call.index, function: { arguments: delta } }] });
  }

  /** The complete call, whose arguments may already have arrived in pieces. */
  #call({ toolCallId, toolName, input, providerExecuted, providerMetadata }: Part<"tool-call">): string {
    if (providerExecuted === true || this.#ownCalls.has(toolCallId)) return "";
    const begun = this.#calls.get(toolCallId);
    if (!begun) return this.#callBegins(toolCallId, toolName, input, providerMetadata);
    // Some models send the arguments, or the signature, only at the end.
    const rest = begun.sent === 0 ? this.#callGoesOn(toolCallId, input) : "";
    if (begun.isSigned || !isSigned(providerMetadata)) return rest;
    const extra = toolCallExtra(this.#target, providerMetadata, []);
    return rest + this.#delta({ tool_calls: [{ index: begun.index, ...extra }] });
  }

  #finish({ finishReason, usage }: Part<"finish">): string {
    const ending = this.#chunk({ ...this.#role() }, finishReasonOf(finishReason, this.#calls.size));
    const reported = this.#wantsUsage ? usageMembers(usage) : undefined;
    const counted = reported ? event({ ...this.#head, choices: [], usage: reported }) : "";
    return `${ending}${counted}data: [DONE]\n\n`;
  }

  #delta(delta: object): string {
    return this.#chunk({ ...this.#role(), ...delta }, null);
  }

  #chunk(delta: object, finish_reason: string | null): string {
    return event({ ...this.#head, choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
  }

  /** Only the first chunk has it. */
  #role(): { readonly role?: "assistant" } {
    if (this.#hasBegun) return {};
    this.#hasBegun = true;
    return { role: "assistant" };
  }
}

function event(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}
