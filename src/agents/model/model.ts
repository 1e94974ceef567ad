import type { LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";

/** A model of any AI SDK provider. */
export type LanguageModel = LanguageModelV3 | LanguageModelV4;

/** A model with a name chosen by the host, such as `ollama/llama3.2`. */
export interface NamedModel {
  readonly id: string;
  readonly model: LanguageModel;
  /**
   * In milliseconds. A longer pause requested by the model (`Retry-After`) is not waited for, nor is any of more than
   * ten seconds.
   */
  readonly patienceMs?: number;
}

/** Models without a name are called `<provider>/<modelId>`. */
export type ModelOption = LanguageModel | NamedModel;

/**
 * The models to try, in order.
 * @throws TypeError if there is none
 */
export function namedModels(option: ModelOption | readonly ModelOption[]): readonly NamedModel[] {
  const models = isList(option) ? option : [option];
  if (models.length === 0) throw new TypeError("model: at least one model is needed");
  return models.map((entry) =>
    "doStream" in entry ? { id: `${entry.provider}/${entry.modelId}`, model: entry } : entry,
  );
}

/** `Array.isArray` cannot narrow a readonly array out of a union. */
function isList<Item>(value: Item | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value);
}
