import { ArgumentFault, quote } from "../fault.ts";

/**
 * Percent-encodes every character that is not unreserved (RFC 3986, 2.3), so that text cannot break out of its
 * place in the URL.
 * @param reserved leaves `: / ? @ ! $ ' ( ) * , ;` unencoded: the reserved characters that are not delimiters in a query
 * @throws ArgumentFault for half of a surrogate pair, which has no UTF-8 encoding
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

/** The value as text. Objects and lists become JSON, since no parameter style defines a form for them here. */
export function scalarText(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
