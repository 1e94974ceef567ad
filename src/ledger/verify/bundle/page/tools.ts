import { sha256 } from "@noble/hashes/sha2.js";
import type { VerifyTools } from "../../../proof/verification.ts";

/**
 * Hashes with a library, because a browser's own functions are asynchronous and each entry needs two hashes. Verifies
 * signatures with the browser's functions.
 */
export const browserTools: VerifyTools = {
  sha256: (data) => sha256(data),
  async verifySignature(publicKey, message, signature) {
    const key = await crypto.subtle.importKey("raw", own(publicKey), "Ed25519", false, ["verify"]);
    return crypto.subtle.verify("Ed25519", key, own(signature), own(message));
  },
};

/** Copies bytes into unshared memory, which browsers require. */
function own(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

/** What this browser lacks in order to check anything; null if it lacks nothing. */
export function missingHere(): string | null {
  if (typeof Uint8Array.fromHex !== "function" || typeof Uint8Array.fromBase64 !== "function") {
    return "This browser is too old. Use one from 2025 or later.";
  }
  if (typeof DecompressionStream !== "function")
    return "This browser cannot unpack archives. Use a newer one.";
  if (globalThis.crypto?.subtle === undefined) {
    return "This browser cannot check signatures on this page. Open the page from a file, or from an https address.";
  }
  return null;
}
