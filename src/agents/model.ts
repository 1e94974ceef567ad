import type { LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";

/** A model of any provider of the AI SDK's ecosystem. */
export type LanguageModel = LanguageModelV3 | LanguageModelV4;

/** A model under a name of the host's choosing, such as `ollama/llama3.2`. */
export interface NamedModel {
  readonly id: string;
  readonly model: LanguageModel;
  /** Milliseconds: where it asks to be left alone for longer (`Retry-After`), it is not waited for. Ten seconds at most. */
  readonly patienceMs?: number;
}

/** Without a name of its own a model is called `<provider>/<modelId>`. */
export type ModelOption = LanguageModel | NamedModel;

/** The models to try, in order. @throws TypeError when there is none. */
export function namedModels(option: ModelOption | readonly ModelOption[]): readonly NamedModel[] {
  const models = isList(option) ? option : [option];
  if (models.length === 0) throw new TypeError("model: at least one model is needed");
  return models.map((entry) =>
    "doStream" in entry ? { id: `${entry.provider}/${entry.modelId}`, model: entry } : entry,
  );
}

/** `Array.isArray` does not narrow a readonly array out of a union. */
function isList<Item>(value: Item | readonly Item[]): value is readonly Item[] {
  return Array.isArray(value);
}
