import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { VerifyTools } from "../proof/verification.ts";
import { sha256 } from "../tree-hash.ts";
import type { BundleTools } from "./bundle/verify.ts";

/** SubjectPublicKeyInfo of an Ed25519 key, up to the key itself (RFC 8410). */
const SPKI_HEAD = Buffer.from("302a300506032b6570032100", "hex");
/** Maximum number of imported keys that are cached, since few keys sign many checkpoints. */
const MOST_KEYS = 64;
const keys = new Map<string, KeyObject>();

/** Hashing and signature checks as this program does them. */
export const tools: VerifyTools = { sha256, verifySignature: isSignedBy };

export function isSignedBy(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean {
  return verify(null, message, keyOf(publicKey), signature);
}

/** For bundles, whose files are hashed in parts. Takes half the time of the portable hash. */
export const bundleTools: BundleTools = { ...tools, runningHash: () => new Bun.CryptoHasher("sha256") };

function keyOf(publicKey: Uint8Array): KeyObject {
  const hex = publicKey.toHex();
  const known = keys.get(hex);
  if (known) return known;
  const key = createPublicKey({ key: Buffer.concat([SPKI_HEAD, publicKey]), format: "der", type: "spki" });
  if (keys.size >= MOST_KEYS) keys.clear();
  keys.set(hex, key);
  return key;
}
