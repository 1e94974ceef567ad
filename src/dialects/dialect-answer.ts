import type { LanguageModelV4Usage } from "@ai-sdk/provider";

/**
 * An answer in the client's dialect: either as sent by a provider that speaks it, or translated. MUST be read to its
 * end, or ended.
 */
export interface DialectAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The usage reported so far; null if none was. Undefined if it must be read from the bytes. */
  readonly usage?: LanguageModelV4Usage | null;
  /** Masks the provider's address and credentials. */
  readonly hide: (text: string) => string;
  /** The next bytes; undefined at the end. */
  read(): Promise<Uint8Array | undefined>;
  /** Ends the request if it is still in progress. */
  end(): void;
}
