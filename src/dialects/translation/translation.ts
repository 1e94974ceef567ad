import type {
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";
import type { ProviderKind } from "../../config/config.ts";
import type { StrictFormat } from "./strict-answer.ts";
import type { Vectors } from "./vectors.ts";

/** The model that a request is translated for. */
export interface TranslationTarget {
  /** The provider's name in the configuration. */
  readonly provider: string;
  readonly kind: ProviderKind | "builtin";
  /** The addresses that the provider reads itself, by media type. Gatehouse downloads nothing for a client. */
  readonly supportedUrls: Readonly<Record<string, readonly RegExp[]>>;
}

/** The members that identify an answer in a dialect. */
export interface AnswerHead {
  /** Our own id for the answer, without a prefix. */
  readonly id: string;
  /** The model that answers, by its name in the configuration: `<provider>/<model>`. */
  readonly model: string;
  /** Seconds since 1970. */
  readonly created: number;
}

/** Writes a model's answer in a dialect. */
export interface AnswerWriter {
  /** The body of a whole answer. */
  whole(result: LanguageModelV4GenerateResult): object;
  /**
   * The events that a part of a streamed answer produces, each with its final blank line; empty if there are none.
   * The part `finish` ends the answer.
   * @throws whatever an `error` part carries
   */
  part(part: LanguageModelV4StreamPart): string;
}

/** Requests for vectors, and their answers, for providers that speak another dialect. */
export interface VectorTranslation {
  /**
   * @param value the parsed request
   * @throws Problem 400 `unsupported_parameter`, or 422 `validation_failed`
   */
  options(value: unknown): { readonly values: readonly string[]; readonly dimensions?: number };
  /** The parts of the body that answers a request. */
  answer(value: unknown, made: Vectors, model: string): Iterable<string>;
}

/** Requests and answers of a dialect for providers that speak another one. */
export interface Translation {
  /** The client's names for the options of a call, by their names in LanguageModelV4CallOptions. */
  readonly paths: Readonly<Record<string, string>>;
  /**
   * @param value the parsed request
   * @returns the call, without signal and headers
   * @throws Problem 400 `unsupported_parameter` naming the first field that cannot be translated, or 422
   *   `validation_failed`
   */
  options(value: unknown, target: TranslationTarget): LanguageModelV4CallOptions;
  /**
   * The output format that the client wants the model to follow strictly, if any. Absent in dialects that do not
   * offer this choice.
   * @param value the parsed request, accepted by `options`
   */
  strictFormat?(value: unknown): StrictFormat | undefined;
  /** @param value the parsed request that is answered. The writer MUST NOT keep it: streams last a long time */
  writer(value: unknown, target: TranslationTarget, head: AnswerHead): AnswerWriter;
}
