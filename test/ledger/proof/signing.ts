import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import {
  formatVerifierKey,
  keyIdOf,
  type NoteSignature,
  type VerifySignature,
} from "../../../src/ledger/proof/note.ts";
import { sha256 } from "../../../src/ledger/tree-hash.ts";

/** The DER encoding of an Ed25519 key up to its 32 bytes (RFC 8410). */
const PRIVATE_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
const PUBLIC_HEAD = Buffer.from("302a300506032b6570032100", "hex");

export interface TestSigner {
  readonly name: string;
  readonly publicKey: Uint8Array;
  /** The verifier key in C2SP's format. */
  readonly verifierKey: string;
  sign(text: string): NoteSignature;
}

/** A key derived from a number, so that tests use the same keys each time. */
export function testSigner(name: string, seed: number): TestSigner {
  const der = Buffer.concat([PRIVATE_HEAD, sha256(Buffer.from(`seed ${seed}`))]);
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const publicKey = Uint8Array.from(
    createPublicKey(key).export({ format: "der", type: "spki" }).subarray(PUBLIC_HEAD.length),
  );
  return {
    name,
    publicKey,
    verifierKey: formatVerifierKey(sha256, name, publicKey),
    sign: (text) => ({
      name,
      keyId: keyIdOf(sha256, name, publicKey),
      signature: Uint8Array.from(sign(null, Buffer.from(text), key)),
    }),
  };
}

export const verifyEd25519: VerifySignature = (publicKey, message, signature) => {
  const key = createPublicKey({ key: Buffer.concat([PUBLIC_HEAD, publicKey]), format: "der", type: "spki" });
  return verify(null, message, key, signature);
};
