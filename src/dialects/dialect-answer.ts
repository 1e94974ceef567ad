import type { LanguageModelV4Usage } from "@ai-sdk/provider";

/**
 * An answer in the client's dialect: either as sent by a provider that speaks it, or translated. MUST be ended once its
 * bytes are no longer needed, even if it was read to its end.
 */
export interface DialectAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The usage reported so far; null if none was. Undefined if it must be read from the bytes. */
  readonly usage?: LanguageModelV4Usage | null;
  /** Masks the provider's address and credentials. */
  readonly hide: (text: string) => string;
  /** The error if the answer's memory was needed, even after it was read; otherwise null. */
  readonly failure?: Error | null;
  /** The next bytes; undefined at the end. */
  read(): Promise<Uint8Array | undefined>;
  /** Ends the request if it is still in progress, and gives up the answer's memory. Safe to call more than once. */
  end(): void;
}
