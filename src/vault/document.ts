import type { Metadata } from "./messages.ts";

/** A document in the vault, without its text. */
export interface VaultDocument {
  readonly key: number;
  readonly id: string;
  readonly title: string;
  readonly scopeId: number;
  readonly scope: string;
  readonly sourceUri: string | null;
  readonly metadata: Metadata;
  readonly contentType: string;
  /** SHA-256 of the content as sent, in hex. Tells whether a file has changed. */
  readonly contentHash: string;
  /** Length of the text in UTF-16 code units. */
  readonly characters: number;
  readonly chunks: number;
  readonly pages: number;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Passages without model vectors so far. Word search already finds them. */
  readonly pending: number;
}
