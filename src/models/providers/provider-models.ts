import type { EmbeddingModelV4, LanguageModelV4 } from "@ai-sdk/provider";
import type { Clock } from "../../base/clock.ts";
import type { ProviderConfig } from "../../config/config.ts";

/** What a kind's package is given. All of it is passed on: whatever is missing, packages read from the environment. */
export interface ProviderSetup {
  /** Its name in the configuration. */
  readonly name: string;
  readonly config: ProviderConfig;
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
}

/** The models of one provider, by their names there. */
export interface ProviderModels {
  language(model: string): LanguageModelV4;
  /** Undefined for a kind whose API makes no vectors. */
  readonly embedding?: (model: string) => EmbeddingModelV4;
}
