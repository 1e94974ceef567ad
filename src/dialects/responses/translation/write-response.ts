import type {
  LanguageModelV4GenerateResult,
  LanguageModelV4Source,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  SharedV4ProviderMetadata,
} from "@ai-sdk/provider";
import { Problem } from "../../../base/errors.ts";
import type { TypedMembers } from "../../json.ts";
import { isSigned, packSignature } from "../../translation/signatures.ts";
import type { AnswerHead, TranslationTarget } from "../../translation/translation.ts";
import { ItemQueue } from "./item-queue.ts";
import { endedResponse, type ResponseForm } from "./response-form.ts";
import type { ClientTool } from "./tool-names.ts";
import { CallWriter } from "./write-call.ts";
import { MessageWriter } from "./write-message.ts";
import { ReasoningWriter } from "./write-reasoning.ts";

type Part<Type extends LanguageModelV4StreamPart["type"]> = Extract<
  LanguageModelV4StreamPart,
  { type: Type }
>;

/** Thoughts that are being written. Their item begins with their first text. */
interface Thoughts {
  writer?: ReasoningWriter;
  metadata: SharedV4ProviderMetadata;
}

export interface ResponseWriterParts {
  readonly target: TranslationTarget;
  readonly head: AnswerHead;
  readonly form: ResponseForm;
  /** The client's tools in namespaces, by the names that models use. */
  readonly namespaced: ReadonlyMap<string, ClientTool>;
}

/** Writes an answer as the events of a streamed response. The last event contains the whole response. */
export class ResponseWriter {
  readonly #parts: ResponseWriterParts;
  readonly #queue = new ItemQueue();
  readonly #thoughts = new Map<string, Thoughts>();
  readonly #calls = new Map<string, CallWriter>();
  /** The provider runs these itself. */
  readonly #ownCalls = new Set<string>();
  #message: MessageWriter | null = null;
  /** Sources of text that has not begun yet. */
  #sources: LanguageModelV4Source[] = [];
  #sequence = 0;

  constructor(parts: ResponseWriterParts) {
    this.#parts = parts;
  }

  /** The events that a part produces. The response begins with its first item, so until then it can still fail. */
  part(part: LanguageModelV4StreamPart): string {
    if (part.type === "finish") return this.#finish(part);
    this.#add(part);
    return this.#begun(this.#queue.take());
  }

  whole({ content, finishReason, usage }: LanguageModelV4GenerateResult): object {
    for (const [index, part] of content.entries()) {
      const id = String(index);
      if (part.type === "text") {
        this.#addText(part.text);
        for (const citation of part.citations ?? []) this.#cite(citation);
      } else if (part.type === "reasoning") {
        const { text, providerMetadata } = part;
        const signed = providerMetadata ? { providerMetadata } : {};
        this.#think({ type: "reasoning-delta", id, delta: text, ...signed });
        this.#think({ type: "reasoning-end", id });
      } else this.#add(part);
    }
    this.#closeAll();
    return endedResponse(this.#parts.form, this.#output(), finishReason, usage);
  }

  #add(part: Exclude<LanguageModelV4StreamPart, Part<"finish">>): void {
    switch (part.type) {
      case "text-delta":
        this.#addText(part.delta);
        break;
      case "text-end":
        for (const citation of part.citations ?? []) this.#cite(citation);
        break;
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        this.#think(part);
        break;
      case "tool-input-start":
        if (part.providerExecuted === true) this.#ownCalls.add(part.id);
        else this.#beginCall(part.id, part.toolName, part.providerMetadata);
        break;
      case "tool-input-delta":
        this.#calls.get(part.id)?.add(part.delta);
        break;
      case "tool-call":
        this.#endCall(part);
        break;
      case "source":
        this.#source(part);
        break;
      case "file":
        throw new Problem("provider_failed", "The model answered with a file, which cannot be translated.");
      case "error":
        throw part.error;
      default:
        break;
    }
  }

  #addText(delta: string): void {
    if (delta === "") return;
    this.#openMessage().add(delta);
  }

  /** Consecutive pieces of text are one message. */
  #openMessage(): MessageWriter {
    if (this.#message && this.#message.item === this.#queue.last) return this.#message;
    this.#message?.close();
    const message = new MessageWriter(this.#queue, this.#newId("msg"));
    this.#message = message;
    for (const source of this.#sources) message.cite(source);
    this.#sources = [];
    return message;
  }

  #cite({
    source,
    startIndex,
    endIndex,
  }: {
    source: LanguageModelV4Source;
    startIndex?: number;
    endIndex?: number;
  }) {
    this.#openMessage().cite(source, startIndex, endIndex);
  }

  #source(source: LanguageModelV4Source): void {
    if (this.#message && !this.#message.item.isClosed) this.#message.cite(source);
    else this.#sources.push(source);
  }

  #think(part: Part<"reasoning-start" | "reasoning-delta" | "reasoning-end">): void {
    const thoughts = this.#thoughts.get(part.id) ?? { metadata: {} };
    this.#thoughts.set(part.id, thoughts);
    if (isSigned(part.providerMetadata)) thoughts.metadata = { ...part.providerMetadata };
    if (part.type === "reasoning-delta" && part.delta !== "") {
      thoughts.writer ??= this.#beginThoughts();
      thoughts.writer.add(part.delta);
    }
    if (part.type === "reasoning-end") this.#endThoughts(part.id, thoughts);
  }

  #beginThoughts(): ReasoningWriter {
    this.#message?.close();
    return new ReasoningWriter(this.#queue, this.#newId("rs"));
  }

  #endThoughts(id: string, { writer, metadata }: Thoughts): void {
    this.#thoughts.delete(id);
    const signature = isSigned(metadata) ? packSignature(this.#parts.target, metadata) : undefined;
    if (writer === undefined && signature === undefined) return;
    (writer ?? this.#beginThoughts()).close(signature);
  }

  #beginCall(callId: string, name: string, metadata: SharedV4ProviderMetadata | undefined): CallWriter {
    this.#message?.close();
    const signed = this.#signCall(callId, metadata);
    const tool = this.#parts.namespaced.get(name) ?? { name };
    const call = new CallWriter(this.#queue, this.#newId("fc"), { callId, tool, isSigned: signed });
    this.#calls.set(callId, call);
    return call;
  }

  /** Thoughts without text sign a call, since a `function_call` has no field for a signature. */
  #signCall(callId: string, metadata: SharedV4ProviderMetadata | undefined): boolean {
    if (metadata === undefined || !isSigned(metadata)) return false;
    this.#beginThoughts().close(packSignature(this.#parts.target, metadata, callId));
    return true;
  }

  #endCall({
    toolCallId,
    toolName,
    input,
    providerExecuted,
    providerMetadata,
  }: LanguageModelV4ToolCall): void {
    if (providerExecuted === true || this.#ownCalls.has(toolCallId)) return;
    const call = this.#calls.get(toolCallId) ?? this.#beginCall(toolCallId, toolName, providerMetadata);
    call.close(input);
    this.#calls.delete(toolCallId);
    // Some packages report a signature only with the finished call.
    if (!call.isSigned) this.#signCall(toolCallId, providerMetadata);
  }

  #closeAll(): void {
    for (const [id, thoughts] of this.#thoughts) this.#endThoughts(id, thoughts);
    for (const call of this.#calls.values()) call.close(undefined);
    if (this.#sources.length > 0 || this.#queue.items.length === 0) this.#openMessage();
    this.#message?.close();
  }

  #finish({ finishReason, usage }: Part<"finish">): string {
    this.#closeAll();
    const response = endedResponse(this.#parts.form, this.#output(), finishReason, usage);
    const type = `response.${response.status}`;
    return this.#begun(this.#queue.take()) + this.#event({ type, response });
  }

  #output(): object[] {
    return this.#queue.items.map(({ final }) => final);
  }

  #newId(prefix: string): string {
    return `${prefix}_${this.#parts.head.id}_${this.#queue.items.length}`;
  }

  /** The given events, after those that begin the response. */
  #begun(events: readonly TypedMembers[]): string {
    if (events.length === 0) return "";
    let begin = "";
    if (this.#sequence === 0) {
      const response = { ...this.#parts.form, status: "in_progress", output: [], usage: null };
      begin = ["response.created", "response.in_progress"]
        .map((type) => this.#event({ type, response }))
        .join("");
    }
    return begin + events.map((event) => this.#event(event)).join("");
  }

  #event(event: TypedMembers): string {
    const { type, ...rest } = event;
    const data = { type, sequence_number: this.#sequence++, ...rest };
    return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  }
}
