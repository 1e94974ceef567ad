import { ArgumentFault, quote } from "../fault.ts";

/**
 * Percent-encodes everything that is not unreserved (RFC 3986, 2.3), so that a text cannot leave the place where it is put.
 * @param reserved leaves `: / ? @ ! $ ' ( ) * , ;` as they are: those reserved characters that end nothing in a query
 * @throws ArgumentFault for half a character, which has no UTF-8
 */
export function percentEncode(text: string, reserved = false): string {
  if (!text.isWellFormed())
    throw new ArgumentFault(`the text ${quote(text.toWellFormed())} is not valid Unicode`);
  if (reserved) return encodeURIComponent(text).replace(/%(?:3A|2F|3F|40|24|2C|3B)/g, decodeURIComponent);
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** As text: what holds something is JSON, which no style has a place for. */
export function scalarText(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
