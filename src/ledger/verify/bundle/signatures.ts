import type { Manifest } from "../../article14/format/manifest.ts";
import { parseSignedCheckpoint } from "../../proof/checkpoint.ts";
import { isEqual } from "../../proof/hash.ts";
import { fromBase64, NoteError, signersOf } from "../../proof/note.ts";
import type { TrustAnchors, VerifyTools } from "../../proof/verification.ts";
import type { VerificationReport } from "../report.ts";
import { type BundleKeys, isSameKey } from "./trust.ts";

const SIGNATURE_BYTES = 64;
const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/**
 * Checks `manifest.sig`: one line of canonical base64, so a signature has only one valid file. @throws
 * SignaturesUnchecked
 */
export async function checkManifestSignature(
  manifestBytes: Uint8Array,
  signatureLine: Uint8Array,
  { trusted, inside }: BundleKeys,
  { keys: given }: TrustAnchors,
  tools: VerifyTools,
  report: VerificationReport,
): Promise<void> {
  const signature = fromBase64(DECODER.decode(signatureLine.subarray(0, -1)));
  const isExact =
    signature !== undefined && isEqual(signatureLine, ENCODER.encode(`${signature.toBase64()}\n`));
  if (!isExact || signature.length !== SIGNATURE_BYTES) {
    report.tampered("manifest_signature", "manifest.sig is not a signature.");
    return;
  }
  for (const { publicKey } of trusted) {
    if (await tools.verifySignature(publicKey, manifestBytes, signature)) return;
  }
  for (const { publicKey } of given.length === 0 ? [] : inside) {
    if (!(await tools.verifySignature(publicKey, manifestBytes, signature))) continue;
    report.tampered(
      "other_key",
      "The bundle is signed neither by the key that you supplied nor by a key that it vouches for: somebody else made the bundle, or the key was lost and replaced. Ask the gateway's operator for its key, through a channel other than this bundle.",
    );
    return;
  }
  report.tampered(
    "manifest_changed",
    "The signature in manifest.sig does not match manifest.json: one of the two was changed.",
  );
}

/**
 * Checks `checkpoint.txt`: its ledger, its signers, and that it signs the manifest's tree. @throws
 * SignaturesUnchecked
 */
export async function checkCheckpoint(
  text: string,
  { origin, tree }: Manifest,
  { trusted, inside }: BundleKeys,
  tools: VerifyTools,
  report: VerificationReport,
): Promise<void> {
  try {
    const { note, checkpoint } = parseSignedCheckpoint(text);
    if (checkpoint.origin !== origin) {
      report.tampered(
        "checkpoint_of_another_ledger",
        `checkpoint.txt belongs to the ledger ${checkpoint.origin}, the bundle to ${origin}.`,
      );
      return;
    }
    if ((await signersOf(note, trusted, tools.verifySignature)).length === 0) {
      const isOurs = inside.some((key) =>
        note.signatures.some(({ keyId }) => keyId.toHex() === key.keyId.toHex()),
      );
      report.tampered(
        "checkpoint_of_another_key",
        `checkpoint.txt is not signed by a trusted key${isOurs ? ", but by one that is only in the bundle" : ""}.`,
      );
    }
    if (checkpoint.size !== tree.size || checkpoint.root.toHex() !== tree.root) {
      report.tampered(
        "checkpoint_differs",
        `checkpoint.txt signs a tree of ${checkpoint.size} entries; the manifest's tree has ${tree.size} entries or a different root.`,
      );
    }
  } catch (error) {
    if (!(error instanceof NoteError)) throw error;
    report.tampered(
      "checkpoint_changed",
      `checkpoint.txt was changed after it was signed: ${error.message}.`,
    );
  }
}

/** The keys that the result relies on. For `covered`, see `Anchors`. */
export function keyFact(
  { trusted, inside }: BundleKeys,
  { keys: given }: TrustAnchors,
  manifest: Manifest,
  covered: number,
): string {
  if (given.length === 0 && covered > 0) {
    return `${manifest.key}: it signed the checkpoints that you supplied, or their key vouches for it`;
  }
  if (given.length === 0) {
    return `${manifest.key}: taken from the bundle itself. Compare it with the gateway's (gatehouse ledger key), obtained through another channel, or supply that one`;
  }
  const isCurrent = trusted.slice(0, given.length).some((key) => inside[0] && isSameKey(key, inside[0]));
  return isCurrent
    ? `${manifest.key}: the one that you supplied`
    : `${manifest.key}: the key that you supplied vouches for it, because the key was changed`;
}
