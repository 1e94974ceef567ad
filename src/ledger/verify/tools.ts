import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { VerifyTools } from "../proof/verification.ts";
import { sha256 } from "../tree-hash.ts";
import type { BundleTools } from "./bundle/verify.ts";

/** SubjectPublicKeyInfo of an Ed25519 key, up to the key (RFC 8410). */
const SPKI_HEAD = Buffer.from("302a300506032b6570032100", "hex");
/** Few keys sign many checkpoints. */
const MOST_KEYS = 64;
const keys = new Map<string, KeyObject>();

/** As this program hashes and checks signatures. */
export const tools: VerifyTools = {
  sha256,
  verifySignature: (publicKey, message, signature) => verify(null, message, keyOf(publicKey), signature),
};

/** The same for bundles, whose files are hashed in parts: half the time of the hash that runs everywhere. */
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
