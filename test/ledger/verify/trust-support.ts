import { formatVerifierKey } from "../../../src/ledger/proof/note.ts";
import { sha256 } from "../../../src/ledger/tree-hash.ts";
import { STRANGER } from "./attack.ts";

export function keyOf(name: string): string {
  return formatVerifierKey(sha256, name, STRANGER.publicKey);
}

export function publicKeyOf(key: string): Uint8Array {
  return Uint8Array.fromBase64(key.split("+").slice(2).join("+")).slice(1);
}
