import type { RandomSource } from "../base/ids.ts";
import type { Sql, SqlValue, Tx } from "../store/db.ts";
import { insertRowsSql } from "../store/many-rows.ts";
import { LedgerChanged } from "./ledger-changed.ts";
import type { PayloadKind } from "./proof/erasure.ts";

export const SALT_BYTES = 16;

export interface SaltedHash {
  readonly salt: Uint8Array;
  /** Hex of SHA-256 over the salt followed by the text's UTF-8 bytes. */
  readonly hash: string;
}

/**
 * The salt is kept with the text and erased with it. Without the salt, the hash reveals nothing, even of text that
 * could be guessed.
 */
export function saltedHash(text: string, random: RandomSource): SaltedHash {
  const salt = new Uint8Array(SALT_BYTES);
  random(salt);
  return { salt, hash: hashOf(salt, text) };
}

/** The hash of a text as shown in an entry. */
export function hashOf(salt: Uint8Array, text: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(salt).update(text).digest("hex");
}

/**
 * Whether a stored text and its salt have the hash that the entry contains. A salt of another length would shift the
 * beginning of the text.
 */
export function isHashOf(hash: string | undefined, salt: Uint8Array, text: string | Uint8Array): boolean {
  if (salt.length !== SALT_BYTES) return false;
  return hash === hashOf(salt, text);
}

/** A text that belongs to an entry and is kept alongside it. */
export interface Payload {
  readonly workspaceId: number;
  readonly seq: number;
  readonly kind: PayloadKind;
  readonly salt: Uint8Array;
  readonly text: string;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
}

/** The beginning of a stored text. */
export interface PayloadExcerpt {
  readonly kind: PayloadKind;
  readonly text: string;
  /** The length of the whole text. */
  readonly characters: number;
}

/** The texts of an entry, compared with its hashes. */
export interface ProvenTexts {
  readonly workspaceId: number;
  readonly seq: number;
  /** The hashes that the entry contains. */
  readonly hashes: Readonly<Record<PayloadKind, string | undefined>>;
}

/**
 * The stored texts of an entry, each cut after `most` characters. Erased texts are absent. A text may be megabytes
 * long and is hashed as a whole, so each one is read on its own.
 * @throws LedgerChanged if a text does not match the entry
 */
export async function readPayloads(
  sql: Pick<Sql, "all" | "get">,
  { workspaceId, seq, hashes }: ProvenTexts,
  most: number,
): Promise<PayloadExcerpt[]> {
  const kept = await sql.all<{ kind: PayloadKind }>(
    "SELECT kind FROM payloads WHERE workspace_id = $1 AND seq = $2",
    [workspaceId, seq],
  );
  const excerpts: PayloadExcerpt[] = [];
  for (const { kind } of kept) {
    const found = await sql.get<{ salt: Uint8Array; body: string }>(
      "SELECT salt, body FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = $3",
      [workspaceId, seq, kind],
    );
    // The text may have been erased during the wait.
    if (!found) continue;
    const body = Buffer.from(found.body);
    if (!isHashOf(hashes[kind], found.salt, body)) {
      throw new LedgerChanged(`the stored ${kind} of entry ${seq} does not match the ledger`, seq);
    }
    excerpts.push({ kind, ...excerptOf(body, most) });
  }
  return excerpts;
}

/** Cut from the bytes, because a slice of a JavaScript string would keep the whole string in memory. */
function excerptOf(body: Buffer, most: number): Pick<PayloadExcerpt, "text" | "characters"> {
  let [characters, end] = [0, body.length];
  for (let at = 0; at < body.length; at++) {
    // The other bytes of a character begin with the bits 10.
    if (((body[at] as number) & 0xc0) === 0x80) continue;
    if (characters === most) end = at;
    characters += 1;
  }
  return { text: body.toString("utf8", 0, end), characters };
}

/** Rows per statement if there are many texts. */
const ROWS = 8;
const COLUMNS = 6;

export function keepPayloads(tx: Tx, payloads: readonly Payload[]): void {
  for (let from = 0; from < payloads.length; ) {
    const count = payloads.length - from >= ROWS ? ROWS : 1;
    const values: SqlValue[] = [];
    for (const { workspaceId, seq, kind, salt, text, now } of payloads.slice(from, from + count)) {
      values.push(workspaceId, seq, kind, salt, text, now);
    }
    tx.write(count === ROWS ? KEEP_MANY : KEEP_ONE, values);
    from += count;
  }
}

const INTO = "payloads (workspace_id, seq, kind, salt, body, created_at)";
const KEEP_ONE = insertRowsSql(INTO, COLUMNS, 1);
const KEEP_MANY = insertRowsSql(INTO, COLUMNS, ROWS);
