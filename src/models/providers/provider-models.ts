import type { EmbeddingModelV4, LanguageModelV4 } from "@ai-sdk/provider";
import type { Clock } from "../../base/clock.ts";
import type { ProviderConfig } from "../../config/config.ts";
import type { IssuedSecrets } from "./issued-secrets.ts";

/**
 * The values passed to a kind's package. All of them are passed explicitly: packages read missing ones from the
 * environment.
 */
export interface ProviderSetup {
  /** Its name in the configuration. */
  readonly name: string;
  readonly config: ProviderConfig;
  readonly baseUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
  /** Receives every secret that is issued for the provider, so that it is masked. */
  readonly issued: IssuedSecrets;
}

/** The models of one provider, by the provider's own names. */
export interface ProviderModels {
  language(model: string): LanguageModelV4;
  /** Undefined for a kind whose API makes no vectors. */
  readonly embedding?: (model: string) => EmbeddingModelV4;
}
