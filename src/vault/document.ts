import type { Metadata } from "./messages.ts";

/** A document of the vault, without its text. */
export interface VaultDocument {
  readonly key: number;
  readonly id: string;
  readonly title: string;
  readonly scopeId: number;
  readonly scope: string;
  readonly sourceUri: string | null;
  readonly metadata: Metadata;
  readonly contentType: string;
  /** Hex of SHA-256 over what was sent: tells whether a file has changed. */
  readonly contentHash: string;
  /** UTF-16 code units of the text. */
  readonly characters: number;
  readonly chunks: number;
  readonly pages: number;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Passages that a model has not turned into vectors yet; words find them already. */
  readonly pending: number;
}
