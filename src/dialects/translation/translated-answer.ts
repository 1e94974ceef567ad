import type {
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
  SharedV4Warning,
} from "@ai-sdk/provider";
import { AnswerTooLarge } from "../../agents/index.ts";
import { MAX_EMPTY_PARTS, MAX_TOOL_CALLS } from "../../agents/model/response.ts";
import { endingOf } from "../../agents/model/response-end.ts";
import { takeTurn } from "../../base/inflow.ts";
import type { DialectAnswer } from "../dialect-answer.ts";
import { UnfinishedAnswer } from "../failures.ts";
import type { AnswerWriter } from "./translation.ts";
import { unsupported } from "./unsupported.ts";

/** The most bytes of an answer in the client's dialect: as of one that passes. */
const MOST_BYTES = 16 * 1024 * 1024;

/** What a translated answer is written with. */
export interface AnswerParts {
  readonly writer: AnswerWriter;
  /** In whose turns the answer is read. */
  readonly workspaceId: number;
  /** What the client calls the fields that a model's library may warn about. */
  readonly paths: Readonly<Record<string, string>>;
  readonly hide: (text: string) => string;
}

/** What is used of a stream's reader. */
interface PartReader {
  read(): Promise<{ readonly value?: LanguageModelV4StreamPart | undefined }>;
  cancel(): Promise<void>;
}

/** A streamed answer of a model, written in the client's dialect as it comes. */
export class TranslatedStream implements DialectAnswer {
  readonly status = 200;
  readonly headers = new Headers({ "content-type": "text/event-stream" });
  usage: LanguageModelV4Usage | null = null;
  readonly hide: (text: string) => string;
  #reader: PartReader | null;
  readonly #parts: AnswerParts;
  readonly #limits = new AnswerLimits();

  constructor(stream: ReadableStream<LanguageModelV4StreamPart>, parts: AnswerParts) {
    this.#reader = stream.getReader();
    this.#parts = parts;
    this.hide = parts.hide;
  }

  /** @throws AnswerTooLarge, UnfinishedAnswer, Problem 400 `unsupported_parameter`, or the error of the model */
  async read(): Promise<Uint8Array | undefined> {
    const { writer, workspaceId } = this.#parts;
    for (;;) {
      const part = (await this.#reader?.read())?.value;
      if (!part) return undefined;
      this.#limits.addPart(part);
      if (part.type === "stream-start") refuseDropped(part.warnings, this.#parts);
      if (part.type === "finish") {
        this.usage = part.usage;
        requireEnd(part);
      }
      const text = writer.part(part);
      const wait = takeTurn(workspaceId, { bytes: text.length });
      if (wait) await wait;
      if (text === "") continue;
      const bytes = Buffer.from(text);
      this.#limits.addBytes(bytes.length);
      return bytes;
    }
  }

  end(): void {
    // Nobody reads further, so an error of the connection no longer matters.
    this.#reader?.cancel().catch(() => {});
    // The SDK's streams hold the request.
    this.#reader = null;
  }
}

/** A whole answer of a model. It is written when it is read. */
export class WrittenAnswer implements DialectAnswer {
  readonly status = 200;
  readonly headers = new Headers({ "content-type": "application/json" });
  readonly usage: LanguageModelV4Usage | null;
  readonly hide: (text: string) => string;
  readonly #write: () => object;
  #wasRead = false;

  constructor(usage: LanguageModelV4Usage | null, hide: (text: string) => string, write: () => object) {
    this.usage = usage;
    this.hide = hide;
    this.#write = write;
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#wasRead) return undefined;
    this.#wasRead = true;
    return Buffer.from(JSON.stringify(this.#write()));
  }

  end(): void {}
}

/**
 * The body of a whole answer.
 * @throws as `TranslatedStream.read`
 */
export function wholeBody(result: LanguageModelV4GenerateResult, parts: AnswerParts): object {
  const { usage, finishReason, warnings, content } = result;
  refuseDropped(warnings, parts);
  requireEnd({ type: "finish", usage, finishReason });
  const limits = new AnswerLimits();
  for (const part of content) if (part.type === "tool-call") limits.addPart(part);
  return parts.writer.whole(result);
}

/** What is held in memory of an answer, and what a library's work on it may take, is limited as in a task. */
class AnswerLimits {
  readonly #begun = new Set<string>();
  #calls = 0;
  #empty = 0;
  #bytes = 0;

  addPart(part: LanguageModelV4StreamPart): void {
    if (part.type === "tool-input-start") this.#begun.add(part.id);
    else if (part.type === "tool-call") this.#calls++;
    else if (!("delta" in part) || part.delta === "") this.#empty++;
    if (Math.max(this.#begun.size, this.#calls) > MAX_TOOL_CALLS) {
      throw new AnswerTooLarge(`The model requested more than ${MAX_TOOL_CALLS} tool calls at once.`);
    }
    if (this.#empty > MAX_EMPTY_PARTS) throw new AnswerTooLarge("The model's answer does not end.");
  }

  addBytes(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MOST_BYTES) throw new AnswerTooLarge("The model's answer has too many bytes.");
  }
}

/** @throws UnfinishedAnswer if the model reports that it has not ended by itself */
function requireEnd(part: Extract<LanguageModelV4StreamPart, { type: "finish" }>): void {
  const ending = endingOf(part);
  if (ending?.status === "failed") throw new UnfinishedAnswer(ending.failure.reason);
}

/**
 * Some fields are unknown only to some models of a provider, and their libraries leave them out.
 * @throws Problem 400 `unsupported_parameter`
 */
function refuseDropped(warnings: readonly SharedV4Warning[], { paths }: AnswerParts): void {
  for (const warning of warnings) {
    if (warning.type !== "unsupported") continue;
    const path = paths[warning.feature] ?? warning.feature;
    throw unsupported(path, "cannot be sent to this model.");
  }
}
