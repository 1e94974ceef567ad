import {
  convertOpenAICompatibleChatUsage,
  getResponseMetadata,
  mapOpenAICompatibleFinishReason,
} from "@ai-sdk/openai-compatible/internal";
import {
  InvalidResponseDataError,
  type LanguageModelV4StreamPart,
  type SharedV4ProviderMetadata,
  type SharedV4Warning,
} from "@ai-sdk/provider";
import { field } from "../../../base/json.ts";
import { type AnswerChunk, type ChunkUsage, type ContentPart, readChunk } from "./chunk.ts";
import { ToolCallDeltas } from "./tool-calls.ts";

/** Receives the parts of an answer, in order. */
export type EmitPart = (part: LanguageModelV4StreamPart) => void;

export interface AnswerOptions {
  /** What the request could not express. */
  readonly warnings: SharedV4Warning[];
  /** The name under which the provider's own metadata is passed on. */
  readonly metadataKey: string;
  readonly includeRawChunks: boolean;
}

type Block = "text" | "reasoning";

const BLOCK_IDS: Readonly<Record<Block, string>> = { text: "txt-0", reasoning: "reasoning-0" };

/** Turns the events of one streamed answer into parts, the same as those of `@ai-sdk/openai-compatible`. */
export class AnswerParts {
  readonly #emit: EmitPart;
  readonly #options: AnswerOptions;
  readonly #calls: ToolCallDeltas;
  /** The block that is open. */
  #block: Block | undefined;
  #hasMetadata = false;
  #hasRefusal = false;
  #hasFailed = false;
  #finishReason: string | undefined;
  #usage: ChunkUsage | undefined;

  constructor(emit: EmitPart, options: AnswerOptions) {
    this.#emit = emit;
    this.#options = options;
    this.#calls = new ToolCallDeltas(emit, options.metadataKey);
    emit({ type: "stream-start", warnings: options.warnings });
  }

  /**
   * Reads the data of one event. An event that cannot be read becomes an error part.
   * @throws InvalidResponseDataError for a tool call without a name, after which the answer cannot be continued
   */
  add(data: string): void {
    const read = readChunk(data);
    if (this.#options.includeRawChunks) this.#emit({ type: "raw", rawValue: read.raw });
    if (read.kind === "answer") {
      this.#addChunk(read.chunk);
      return;
    }
    this.#hasFailed = true;
    this.#finishReason = undefined;
    this.#emit({ type: "error", error: read.error });
  }

  /**
   * Ends the answer. An answer without a finish reason has failed.
   * @throws InvalidResponseDataError if the name of a tool call never arrived
   */
  end(): void {
    this.#endBlock();
    this.#calls.end();
    const raw = this.#finishReason;
    if (raw === undefined && !this.#hasFailed) {
      const message = "Response stream ended without a finish reason.";
      this.#emit({ type: "error", error: new InvalidResponseDataError({ data: undefined, message }) });
    }
    const hasRefusal = this.#hasRefusal;
    const unified = raw === undefined ? "error" : mapOpenAICompatibleFinishReason(raw, { hasRefusal });
    this.#emit({
      type: "finish",
      finishReason: { unified, raw },
      usage: convertOpenAICompatibleChatUsage(this.#usage),
      providerMetadata: this.#metadata(),
    });
  }

  #addChunk(chunk: AnswerChunk): void {
    this.#addMetadata(chunk);
    if (chunk.usage != null) this.#usage = chunk.usage;
    const [choice] = chunk.choices;
    // A refusal may arrive with the reason or after it, so the reason is translated at the end.
    if (choice?.finish_reason != null) this.#finishReason = choice.finish_reason;
    const delta = choice?.delta;
    if (delta == null) return;
    this.#addText("reasoning", delta.reasoning_content ?? delta.reasoning ?? "");
    const { content, refusal, tool_calls: calls } = delta;
    if (typeof content === "string") this.#addText("text", content);
    else for (const part of content ?? []) this.#addContentPart(part);
    if (typeof refusal === "string" && refusal !== "") {
      this.#hasRefusal = true;
      this.#addText("text", refusal);
    }
    if (calls == null || calls.length === 0) return;
    if (this.#block === "reasoning") this.#endBlock();
    for (const call of calls) this.#calls.add(call);
  }

  /** Some servers begin with a chunk whose metadata is empty. */
  #addMetadata(chunk: AnswerChunk): void {
    if (this.#hasMetadata) return;
    const metadata = getResponseMetadata(chunk);
    if (!Object.values(metadata).some(Boolean)) return;
    this.#hasMetadata = true;
    this.#emit({ type: "response-metadata", ...metadata });
  }

  #addContentPart({ type, text, thinking }: ContentPart): void {
    if (type === "text" && typeof text === "string") this.#addText("text", text);
    else if (type === "thinking" && Array.isArray(thinking)) this.#addText("reasoning", thoughtOf(thinking));
  }

  #addText(block: Block, delta: string): void {
    if (delta === "") return;
    const id = BLOCK_IDS[block];
    if (this.#block !== block) {
      this.#endBlock();
      this.#block = block;
      this.#emit({ type: `${block}-start`, id });
    }
    this.#emit({ type: `${block}-delta`, id, delta });
  }

  #endBlock(): void {
    if (this.#block === undefined) return;
    this.#emit({ type: `${this.#block}-end`, id: BLOCK_IDS[this.#block] });
    this.#block = undefined;
  }

  #metadata(): SharedV4ProviderMetadata {
    const { accepted_prediction_tokens: accepted, rejected_prediction_tokens: rejected } =
      this.#usage?.completion_tokens_details ?? {};
    return {
      [this.#options.metadataKey]: {
        ...(accepted == null ? {} : { acceptedPredictionTokens: accepted }),
        ...(rejected == null ? {} : { rejectedPredictionTokens: rejected }),
      },
    };
  }
}

function thoughtOf(parts: readonly unknown[]): string {
  const texts = parts.filter((part) => field(part, "type") === "text").map((part) => field(part, "text"));
  return texts.filter((text) => typeof text === "string").join("");
}
