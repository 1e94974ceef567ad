import type { RandomSource } from "../base/ids.ts";
import type { Tx } from "../store/db.ts";

/** Which text of an entry: what went in (prompt, arguments) or what came out (output, result). */
export type PayloadKind = "input" | "output";

const SALT_BYTES = 16;

export interface SaltedHash {
  readonly salt: Uint8Array;
  /** Hex of SHA-256 over the salt and the text's UTF-8 bytes. */
  readonly hash: string;
}

/** Without its salt, kept with the text and erased with it, a hash says nothing of a text that could be guessed. */
export function saltedHash(text: string, random: RandomSource): SaltedHash {
  const salt = new Uint8Array(SALT_BYTES);
  random(salt);
  return { salt, hash: new Bun.CryptoHasher("sha256").update(salt).update(text).digest("hex") };
}

export async function keepPayload(
  tx: Tx,
  at: {
    readonly workspaceId: number;
    readonly seq: number;
    readonly kind: PayloadKind;
    readonly now: number;
  },
  text: string,
  salt: Uint8Array,
): Promise<void> {
  await tx.run(
    "INSERT INTO payloads (workspace_id, seq, kind, salt, body, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
    [at.workspaceId, at.seq, at.kind, salt, text, at.now],
  );
}
