import { readEntryFields } from "../../article14/format/entry.ts";
import type { KeyChangeProof, Manifest } from "../../article14/format/manifest.ts";
import { isConsistent, rootOfInclusion } from "../../proof/check.ts";
import { parseSignedCheckpoint, type SignedCheckpoint } from "../../proof/checkpoint.ts";
import { isEqual, type TreeHash } from "../../proof/hash.ts";
import {
  fromBase64,
  keyIdOf,
  NoteError,
  parseVerifierKey,
  signersOf,
  type VerifierKey,
} from "../../proof/note.ts";
import type { TrustAnchors, VerifyTools } from "../../proof/verification.ts";
import type { VerificationReport } from "../report.ts";

/** The keys that matter for a bundle. */
export interface BundleKeys {
  /** Keys in the bundle: the current one first, then its predecessors. */
  readonly inside: readonly VerifierKey[];
  /** Trusted keys: those that the auditor supplied, otherwise the current one; and all keys they vouch for. */
  readonly trusted: readonly VerifierKey[];
  readonly changes: readonly BundleKeyChange[];
}

/** Keys that signed a tree whose last entry names the key after them. */
interface BundleKeyChange {
  readonly from: readonly VerifierKey[];
  readonly to: VerifierKey;
}

/** This platform cannot check signatures at all. */
export class SignaturesUnchecked extends Error {
  override readonly name = "SignaturesUnchecked";
}

/**
 * The same tools, but they throw `SignaturesUnchecked` if a signature cannot be checked, as opposed to being invalid.
 */
export function guarded({ sha256, verifySignature }: VerifyTools): VerifyTools {
  return {
    sha256,
    async verifySignature(publicKey, message, signature) {
      try {
        return await verifySignature(publicKey, message, signature);
      } catch (error) {
        throw new SignaturesUnchecked(error instanceof Error ? error.message : String(error));
      }
    },
  };
}

const MOST_KEYS = 101;

/** The keys in `key.txt`, one per line. @throws NoteError if a line is not a key, or is another ledger's key */
export function parseKeys(text: string, origin: string, tools: VerifyTools): VerifierKey[] {
  const lines = text.split("\n").slice(0, -1);
  if (lines.length === 0 || lines.length > MOST_KEYS)
    throw new NoteError("it does not contain one key per line");
  const keys = lines.map((line) => parseVerifierKey(tools.sha256, line));
  if (keys.some(({ name }) => name !== origin)) throw new NoteError("a key in it belongs to another ledger");
  return keys;
}

/**
 * Determines which keys are trusted. An older key vouches for a newer one if it signed a tree whose last entry names
 * the newer one, and this tree begins with that tree.
 *
 * @throws SignaturesUnchecked
 */
export async function resolveKeys(
  manifest: Manifest,
  inside: readonly VerifierKey[],
  trust: TrustAnchors,
  hash: TreeHash,
  tools: VerifyTools,
  report: VerificationReport,
): Promise<BundleKeys> {
  const { origin } = manifest;
  // A node has one key for all its ledgers, under different names.
  const roots =
    trust.keys.length === 0
      ? inside.slice(0, 1)
      : trust.keys.map(({ publicKey }) => keyFor(origin, publicKey));
  const known = [...roots, ...inside.filter((key) => !roots.some((root) => isSameKey(root, key)))];
  const changes: BundleKeyChange[] = [];
  for (const change of manifest.key_changes) {
    const proven = await proveChange(change, manifest, known, hash, tools, report);
    if (proven) changes.push(proven);
  }
  return { inside, trusted: vouchedBy(roots, changes), changes };

  function keyFor(name: string, publicKey: Uint8Array): VerifierKey {
    return { name, publicKey, keyId: keyIdOf(tools.sha256, name, publicKey) };
  }
}

/** These keys, and all keys they vouch for directly or indirectly. */
export function vouchedBy(
  keys: readonly VerifierKey[],
  changes: readonly BundleKeyChange[],
): readonly VerifierKey[] {
  const vouched = [...keys];
  const isVouched = (key: VerifierKey) => vouched.some((known) => isSameKey(known, key));
  for (let before = -1; before < vouched.length; ) {
    before = vouched.length;
    for (const { from, to } of changes) if (!isVouched(to) && from.some(isVouched)) vouched.push(to);
  }
  return vouched;
}

/** Which keys handed over to which; undefined if no known key signed the change, or its entry names no key. */
async function proveChange(
  { checkpoint, entry, inclusion, consistency }: KeyChangeProof,
  { origin, tree }: Manifest,
  known: readonly VerifierKey[],
  hash: TreeHash,
  tools: VerifyTools,
  report: VerificationReport,
): Promise<BundleKeyChange | undefined> {
  let signed: SignedCheckpoint;
  let from: readonly VerifierKey[];
  try {
    signed = parseSignedCheckpoint(checkpoint);
    if (signed.checkpoint.origin !== origin) return undefined;
    from = await signersOf(signed.note, known, tools.verifySignature);
    if (from.length === 0) return undefined;
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    report.tampered("key_change_broken", `A change of the signing key is not proven: ${error.message}.`);
    return undefined;
  }
  const { size, root } = signed.checkpoint;
  const fields = readEntryFields(entry);
  const leaf = hash.leaf(new TextEncoder().encode(entry));
  const proven = rootOfInclusion(hash, leaf, size - 1, size, hashesOf(inclusion));
  const isProven = fields?.seq === size && proven !== null && isEqual(proven, root);
  const now = { size: tree.size, root: Uint8Array.fromHex(tree.root) };
  if (!isProven || !isConsistent(hash, { size, root }, now, hashesOf(consistency))) {
    report.tampered(
      "key_change_broken",
      `The change of the signing key at entry ${size} is not proven: the tree that the former key signed is not the beginning of the bundle's tree.`,
      size,
    );
    return undefined;
  }
  const to = fields.detail?.to;
  const isChange =
    fields.action === "ledger.rotate_key" && fields.outcome === "succeeded" && fields.code === undefined;
  if (!isChange || typeof to !== "string") return undefined;
  try {
    const key = parseVerifierKey(tools.sha256, to);
    return key.name === origin ? { from, to: key } : undefined;
  } catch {
    return undefined;
  }
}

export function isSameKey(a: VerifierKey, b: VerifierKey): boolean {
  return isEqual(a.publicKey, b.publicKey);
}

/** Decodes base64. Invalid text becomes an empty hash, which no valid proof contains. */
export function hashesOf(texts: readonly string[]): Uint8Array[] {
  return texts.map((text) => fromBase64(text) ?? new Uint8Array(0));
}
