import { OperatorError } from "../../base/errors.ts";
import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { formatVerifierKey, keyIdOf, NoteError, parseVerifierKey, type VerifierKey } from "../proof/note.ts";
import type { TrustAnchors, VerifyTools } from "../proof/verification.ts";
import type { VerifiedEntryFields } from "./form.ts";
import { counted, type VerificationReport } from "./report.ts";
import type { KeptCheckpoint } from "./roots.ts";

// Qualified, so it sorts by number and not by the text column of the same name, which would put the tenth key second.
const KEYS =
  "SELECT CAST(id AS TEXT) AS id, public_key, retired_at IS NULL AS current FROM main.ledger_keys ORDER BY ledger_keys.id";
const PUBLIC_KEY_BYTES = 32;

/** One key serves all workspaces, under another name in each. Its hex identifies it. */
type KeyHex = string;

/** The handover from one key to another, as recorded by an entry. */
export interface Rotation {
  readonly seq: number;
  readonly from: KeyHex;
  readonly to: KeyHex;
}

/**
 * A ledger's evidence about keys: up to which size each key signed the actual entries, and which key handed over to
 * which.
 */
export interface KeyEvidence {
  readonly signed: ReadonlyMap<KeyHex, number>;
  readonly rotations: readonly Rotation[];
}

/** The keys that sign a directory's checkpoints: those stored in it, and those that the auditor supplied. */
export class Keyring {
  readonly #tools: VerifyTools;
  readonly #stored: readonly Uint8Array[];
  readonly #given: readonly Uint8Array[];

  constructor(stored: readonly Uint8Array[], trust: TrustAnchors, tools: VerifyTools) {
    this.#stored = stored;
    this.#given = trust.keys.map(({ publicKey }) => publicKey);
    this.#tools = tools;
  }

  /** The keys in the directory, oldest first. */
  get stored(): readonly Uint8Array[] {
    return this.#stored;
  }

  /** All keys, under the name they have in one ledger. */
  verifierKeys(origin: string): VerifierKey[] {
    const keys = new Map([...this.#stored, ...this.#given].map((key) => [key.toHex(), key]));
    return [...keys.values()].map((publicKey) => ({
      name: origin,
      keyId: keyIdOf(this.#tools.sha256, origin, publicKey),
      publicKey,
    }));
  }

  /** The key in force, in C2SP's format. */
  current(origin: string): string | undefined {
    const key = this.#stored.at(-1);
    return key && formatVerifierKey(this.#tools.sha256, origin, key);
  }

  isStored(key: KeyHex): boolean {
    return this.#stored.some((stored) => stored.toHex() === key);
  }

  /**
   * The trusted keys: those that the auditor supplied, otherwise the oldest stored one, and every key named by an
   * entry that a trusted key has signed. Two keys' signatures on a checkpoint prove nothing, because anyone may add
   * one.
   */
  trusted(ledgers: readonly KeyEvidence[]): ReadonlySet<KeyHex> {
    const roots = this.#given.length > 0 ? this.#given : this.#stored.slice(0, 1);
    return vouchedBy(
      roots.map((key) => key.toHex()),
      ledgers,
    );
  }

  /**
   * The sets of keys, each of which must vouch for a whole ledger. If the auditor supplied no key, the key of each
   * kept checkpoint must lead to the keys in force. Otherwise a stranger's key in the directory would be trusted,
   * with its signatures on entries after the last of those checkpoints.
   */
  trustedSets(ledgers: readonly KeyEvidence[], kept: readonly KeptCheckpoint[]): ReadonlySet<KeyHex>[] {
    const sets = [this.trusted(ledgers)];
    if (this.#given.length > 0) return sets;
    const signers = new Map(kept.map(({ keys }) => [keys.join(), keys]));
    for (const keys of signers.values()) sets.push(vouchedBy(keys, ledgers));
    return sets;
  }
}

/** These keys, and every key named by an entry that one of them has signed. */
function vouchedBy(roots: readonly KeyHex[], ledgers: readonly KeyEvidence[]): ReadonlySet<KeyHex> {
  const trusted = new Set(roots);
  for (let size = -1; size < trusted.size; ) {
    size = trusted.size;
    for (const { signed, rotations } of ledgers) {
      for (const { seq, from, to } of rotations) {
        if (trusted.has(from) && (signed.get(from) ?? 0) >= seq) trusted.add(to);
      }
    }
  }
  return trusted;
}

interface KeyRow {
  readonly id: string;
  readonly public_key: unknown;
  readonly current: number;
}

export function storedKeys(database: ReadOnlyDatabase, report: VerificationReport): Uint8Array[] {
  const keys: Uint8Array[] = [];
  const rows = [...database.rows<KeyRow>(KEYS)];
  for (const { public_key: key } of rows) {
    if (key instanceof Uint8Array && key.length === PUBLIC_KEY_BYTES) keys.push(key);
    else report.tampered("key_changed", "A row of the ledgers' keys does not contain a key: it was changed.");
  }
  if (rows.some(({ id }, index) => id !== String(index + 1))) {
    report.tampered(
      "key_changed",
      "The ledgers' keys are not numbered from 1 without gaps: rows were removed or added.",
    );
  }
  if (rows.some(({ current }, index) => (current === 1) !== (index === rows.length - 1))) {
    report.tampered(
      "key_changed",
      "Only the last of the ledgers' keys can be in force, but the rows say otherwise: rows were changed or added.",
    );
  }
  return keys;
}

/** Reports supplied keys that are not in the directory. */
export function compareKeys(
  stored: readonly Uint8Array[],
  given: readonly VerifierKey[],
  origins: string,
  report: VerificationReport,
): void {
  const known = new Set(stored.map((key) => key.toHex()));
  for (const { name, publicKey } of given) {
    if (known.has(publicKey.toHex())) continue;
    if (name.startsWith(origins)) {
      report.tampered(
        "key_missing",
        `The key supplied for ${name} is not stored with the ledger: the stored keys were replaced, or are older than this one.`,
      );
    } else {
      report.undecided(
        "key_unfit",
        `The key supplied belongs to ${name}, not to a ledger in this data directory, whose names begin with ${origins}.`,
      );
    }
  }
}

/**
 * Reports keys that replaced another without an entry that records it.
 * @param named Keys named by an entry of any ledger
 */
export function checkNamed(
  stored: readonly Uint8Array[],
  named: ReadonlySet<KeyHex>,
  report: VerificationReport,
): void {
  for (const [index, key] of stored.entries()) {
    if (index === 0 || named.has(key.toHex())) continue;
    report.tampered(
      "key_changed",
      `Key ${index + 1} of the ledgers replaced another key, but no entry records this: somebody else added it.`,
    );
  }
}

/** The key that replaced another according to an entry, even if that one was lost. */
export function newKeyOf(
  { action, outcome, detail }: VerifiedEntryFields,
  origin: string,
  tools: VerifyTools,
): KeyHex | null {
  if (action !== "ledger.rotate_key" || outcome !== "succeeded") return null;
  return keyNamed(detail?.to, origin, tools);
}

/** The handover that an entry records; null if it records none, or records that the old key was lost. */
export function rotationOf(entry: VerifiedEntryFields, origin: string, tools: VerifyTools): Rotation | null {
  const { action, outcome, code, detail } = entry;
  if (action !== "ledger.rotate_key" || outcome !== "succeeded" || code !== undefined) return null;
  const from = keyNamed(detail?.from, origin, tools);
  const to = keyNamed(detail?.to, origin, tools);
  return from && to ? { seq: entry.seq, from, to } : null;
}

/** Whether an entry records that the key was lost and replaced. Nothing but this entry vouches for the new key. */
export function saysKeyLost({ action, outcome, code }: VerifiedEntryFields): boolean {
  return action === "ledger.rotate_key" && outcome === "succeeded" && code === "key_lost";
}

/**
 * Reports each entry at which the chain of trust is broken.
 * @param given Number of entries that a checkpoint from elsewhere has proven unchanged
 */
export function reportLostKeys(report: VerificationReport, lost: readonly number[], given: number): void {
  for (const seq of lost) {
    if (given >= seq - 1) continue;
    report.undecided(
      "key_lost",
      `Entry ${seq} records that the signing key was lost and replaced. The chain of trust is broken there: nothing proves that the entries before it are those that the lost key signed, and anyone who can write the database could have caused this. A checkpoint of ${counted(seq - 1)} entries or more that was kept elsewhere proves it (--checkpoint). Find out who replaced the key, and why.`,
      seq,
    );
  }
}

function keyNamed(text: unknown, origin: string, tools: VerifyTools): KeyHex | null {
  try {
    const key = typeof text === "string" ? parseVerifierKey(tools.sha256, text) : null;
    return key?.name === origin ? key.publicKey.toHex() : null;
  } catch (error) {
    if (error instanceof NoteError) return null;
    throw error;
  }
}

/** The verifier keys in the text, one per line. @throws OperatorError with exit code 2 */
export function parseKeys(text: string, tools: Pick<VerifyTools, "sha256">): VerifierKey[] {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  try {
    if (lines.length === 0) throw new NoteError("it is empty");
    return lines.map((line) => parseVerifierKey(tools.sha256, line));
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    throw new OperatorError(`--key: ${error.message}`, "use the output of `gatehouse ledger key`", 2);
  }
}
