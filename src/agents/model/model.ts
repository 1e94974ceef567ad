import type { LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";

/** A model of any AI SDK provider. */
export type LanguageModel = LanguageModelV3 | LanguageModelV4;

/** A model with a name chosen by the host, such as `ollama/llama3.2`. */
export interface NamedModel {
  readonly id: string;
  readonly model: LanguageModel;
  /**
   * The longest pause requested by the model (`Retry-After`) that the run waits for, in milliseconds; never more than
   * ten seconds.
   */
  readonly patienceMs?: number;
}

/** Models without a name are called `<provider>/<modelId>`. */
export type ModelOption = LanguageModel | NamedModel;
