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
import { AnswerShare } from "../../models/answer-memory.ts";
import type { DialectAnswer } from "../dialect-answer.ts";
import { UnfinishedAnswer } from "../failures.ts";
import type { AnswerWriter } from "./translation.ts";
import { unsupported } from "./unsupported.ts";

/**
 * The maximum number of bytes of an answer in the client's dialect, the same as for an answer that passes through.
 */
const MOST_BYTES = 16 * 1024 * 1024;

/** The context in which a translated answer is written. */
export interface AnswerParts {
  readonly writer: AnswerWriter;
  /** The workspace whose turns are used to read the answer. */
  readonly workspaceId: number;
  /** The client's names of the fields that a model's library may warn about. */
  readonly paths: Readonly<Record<string, string>>;
  readonly hide: (text: string) => string;
}

/** The part of a stream's reader that is used. */
interface PartReader {
  read(): Promise<{ readonly value?: LanguageModelV4StreamPart | undefined }>;
  cancel(): Promise<void>;
}

/** A model's streamed answer, written in the client's dialect as it arrives. */
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
    // Nothing more is read, so a connection error no longer matters.
    this.#reader?.cancel().catch(() => {});
    // The SDK's streams keep the request in memory.
    this.#reader = null;
  }
}

/** A model's whole answer. It is written when it is read. */
export class WrittenAnswer implements DialectAnswer {
  readonly status = 200;
  readonly headers = new Headers({ "content-type": "application/json" });
  readonly usage: LanguageModelV4Usage | null;
  readonly hide: (text: string) => string;
  readonly #write: () => object;
  readonly #share = new AnswerShare();
  #wasRead = false;

  constructor(usage: LanguageModelV4Usage | null, hide: (text: string) => string, write: () => object) {
    this.usage = usage;
    this.hide = hide;
    this.#write = write;
  }

  get failure(): Error | null {
    return this.#share.failure;
  }

  /** @throws AnswerTooLarge if its memory is needed */
  async read(): Promise<Uint8Array | undefined> {
    if (this.#wasRead) return undefined;
    this.#wasRead = true;
    const bytes = Buffer.from(JSON.stringify(this.#write()));
    this.#share.add(bytes.length);
    return bytes;
  }

  end(): void {
    this.#share.leave();
  }
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

/** Limits on an answer's memory and on the work a library may do for it, as in a task. */
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
    if (this.#empty > MAX_EMPTY_PARTS) throw new AnswerTooLarge("The model's answer did not end.");
  }

  addBytes(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MOST_BYTES) throw new AnswerTooLarge("The model's answer is too large.");
  }
}

/** @throws UnfinishedAnswer if the model reports that its answer did not end normally */
function requireEnd(part: Extract<LanguageModelV4StreamPart, { type: "finish" }>): void {
  const ending = endingOf(part);
  if (ending?.status === "failed") throw new UnfinishedAnswer(ending.failure.reason);
}

/**
 * Refuses fields that some models of a provider do not support, and that their libraries therefore left out.
 * @throws Problem 400 `unsupported_parameter`
 */
function refuseDropped(warnings: readonly SharedV4Warning[], { paths }: AnswerParts): void {
  for (const warning of warnings) {
    if (warning.type !== "unsupported") continue;
    const path = paths[warning.feature] ?? warning.feature;
    throw unsupported(path, "cannot be sent to this model.");
  }
}
