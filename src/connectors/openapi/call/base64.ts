import { ArgumentFault } from "../fault.ts";

/** The bytes of a base64 argument. @throws ArgumentFault */
export function base64Bytes(value: unknown, what: string): Uint8Array<ArrayBuffer> {
  if (typeof value === "string") {
    try {
      return Uint8Array.fromBase64(value);
    } catch {
      // Reported below, like a value that is not a string.
    }
  }
  throw new ArgumentFault(`${what} must be base64`);
}
