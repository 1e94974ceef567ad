import type {
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import { isSigned, packSignature } from "../../translation/signatures.ts";
import type { AnswerHead, TranslationTarget } from "../../translation/translation.ts";
import { callSignature, citationOf, inexpressible } from "./answer-blocks.ts";
import { endMembers, usageMembers } from "./answer-end.ts";
import { BlockQueue, eventText, type StreamedBlock } from "./block-queue.ts";
import type { ThinkingForm } from "./thinking-form.ts";
import { messageHead } from "./write-message.ts";

type Part<Type extends LanguageModelV4StreamPart["type"]> = Extract<
  LanguageModelV4StreamPart,
  { type: Type }
>;

/** Thoughts that are being written. Their block begins with their first text. */
interface Thoughts {
  block?: StreamedBlock;
  metadata: SharedV4ProviderMetadata;
}

/** A tool call that is being written. */
interface ToolInput {
  readonly block: StreamedBlock;
  readonly isSigned: boolean;
  hasInput: boolean;
}

/** Writes a streamed answer as the events of a message. */
export class MessageEvents {
  readonly #target: TranslationTarget;
  readonly #head: AnswerHead;
  readonly #thinking: ThinkingForm;
  readonly #blocks = new BlockQueue();
  readonly #texts = new Map<string, StreamedBlock>();
  readonly #thoughts = new Map<string, Thoughts>();
  readonly #inputs = new Map<string, ToolInput>();
  /** Citations for text that has not begun yet. */
  #citations: object[] = [];
  #hasBegun = false;
  #callsTools = false;

  constructor(target: TranslationTarget, head: AnswerHead, thinking: ThinkingForm) {
    this.#target = target;
    this.#head = head;
    this.#thinking = thinking;
  }

  /** The events that a part produces. The message begins with its first block, so until then it can still fail. */
  part(part: LanguageModelV4StreamPart): string {
    if (part.type === "finish") return this.#finish(part);
    this.#add(part);
    return this.#started(this.#blocks.take());
  }

  #add(part: Exclude<LanguageModelV4StreamPart, Part<"finish">>): void {
    switch (part.type) {
      case "text-delta":
        this.#addText(part);
        break;
      case "text-end":
        this.#endText(part);
        break;
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        this.#addThoughts(part);
        break;
      case "tool-input-start":
        this.#beginCall(part);
        break;
      case "tool-input-delta":
        this.#addInput(part.id, part.delta);
        break;
      case "tool-call":
        this.#endCall(part);
        break;
      case "source":
        this.#cite(citationOf(part));
        break;
      case "error":
        throw part.error;
      case "text-start":
      case "tool-input-end":
      case "stream-start":
      case "response-metadata":
      case "ping":
      case "raw":
        break;
      default:
        throw inexpressible(part.type);
    }
  }

  #addText({ id, delta }: Part<"text-delta">): void {
    if (delta === "") return;
    const known = this.#texts.get(id);
    const block = known && !known.isClosed ? known : this.#beginText(id);
    this.#blocks.add(block, { type: "text_delta", text: delta });
  }

  #beginText(id: string): StreamedBlock {
    const block = this.#blocks.begin({ type: "text", text: "" });
    this.#texts.set(id, block);
    const citations = this.#citations;
    this.#citations = [];
    for (const citation of citations) this.#blocks.add(block, { type: "citations_delta", citation });
    return block;
  }

  #endText({ id, citations = [] }: Part<"text-end">): void {
    for (const { source, citedText } of citations) this.#cite(citationOf(source, citedText));
    const block = this.#texts.get(id);
    if (block) this.#blocks.close(block);
    this.#texts.delete(id);
  }

  #cite(citations: readonly object[]): void {
    const { last } = this.#blocks;
    if (last?.type !== "text") this.#citations.push(...citations);
    else for (const citation of citations) this.#blocks.add(last, { type: "citations_delta", citation });
  }

  #addThoughts(part: Part<"reasoning-start" | "reasoning-delta" | "reasoning-end">): void {
    const { isShown, isOmitted } = this.#thinking;
    if (!isShown) return;
    const thoughts = this.#thoughts.get(part.id) ?? { metadata: {} };
    this.#thoughts.set(part.id, thoughts);
    if (isSigned(part.providerMetadata)) thoughts.metadata = { ...part.providerMetadata };
    if (part.type === "reasoning-delta" && part.delta !== "") {
      thoughts.block ??= this.#beginThoughts();
      if (!isOmitted) this.#blocks.add(thoughts.block, { type: "thinking_delta", thinking: part.delta });
    }
    if (part.type === "reasoning-end") this.#endThoughts(part.id, thoughts);
  }

  #beginThoughts(): StreamedBlock {
    return this.#blocks.begin({ type: "thinking", thinking: "", signature: "" });
  }

  #endThoughts(id: string, { block, metadata }: Thoughts): void {
    this.#thoughts.delete(id);
    if (block === undefined && !isSigned(metadata)) return;
    this.#sign(block ?? this.#beginThoughts(), packSignature(this.#target, metadata));
  }

  #sign(block: StreamedBlock, signature: string): void {
    this.#blocks.add(block, { type: "signature_delta", signature });
    this.#blocks.close(block);
  }

  #beginCall({ id, toolName, providerMetadata, providerExecuted }: Part<"tool-input-start">): void {
    if (providerExecuted) throw inexpressible("a call to one of the provider's own tools");
    this.#callsTools = true;
    const signatures = callSignature(this.#target, id, providerMetadata);
    for (const { signature } of signatures) this.#sign(this.#beginThoughts(), signature);
    const block = this.#blocks.begin({ type: "tool_use", id, name: toolName, input: {} });
    this.#inputs.set(id, { block, isSigned: signatures.length > 0, hasInput: false });
  }

  #addInput(id: string, text: string): void {
    const input = this.#inputs.get(id);
    if (!input || text === "") return;
    input.hasInput = true;
    this.#blocks.add(input.block, { type: "input_json_delta", partial_json: text });
  }

  #endCall(call: LanguageModelV4ToolCall): void {
    const { toolCallId: id, providerMetadata, providerExecuted } = call;
    if (!this.#inputs.has(id)) {
      this.#beginCall({
        ...{ type: "tool-input-start", id, toolName: call.toolName },
        ...(providerMetadata ? { providerMetadata } : {}),
        ...(providerExecuted ? { providerExecuted } : {}),
      });
    }
    const input = this.#inputs.get(id);
    if (!input) return;
    if (!input.hasInput) this.#addInput(id, call.input);
    this.#blocks.close(input.block);
    this.#inputs.delete(id);
    if (input.isSigned) return;
    // Some packages report a signature only with the finished call.
    for (const { signature } of callSignature(this.#target, id, providerMetadata)) {
      this.#sign(this.#beginThoughts(), signature);
    }
  }

  #finish({ usage, ...end }: Part<"finish">): string {
    for (const [id, thoughts] of this.#thoughts) this.#endThoughts(id, thoughts);
    if (this.#citations.length > 0) this.#beginText("");
    this.#blocks.closeAll();
    const delta = endMembers(end, this.#callsTools);
    const last = { type: "message_delta", delta, usage: usageMembers(usage) };
    return this.#started(this.#blocks.take() + eventText(last) + eventText({ type: "message_stop" }));
  }

  /** The given events, after the one that begins the message. Its usage is known only at the end. */
  #started(events: string): string {
    if (events === "" || this.#hasBegun) return events;
    this.#hasBegun = true;
    const usage = { input_tokens: 0, output_tokens: 0 };
    const message = {
      ...messageHead(this.#head),
      ...{ content: [], stop_reason: null, stop_sequence: null, usage },
    };
    return eventText({ type: "message_start", message }) + events;
  }
}
