/**
 * Why a document or one of its operations cannot be used: a sentence without the connector's name and without the
 * full stop. Never leaves this folder.
 */
export class DocumentFault extends Error {
  override readonly name = "DocumentFault";
}

/**
 * The document as a whole takes too much work to read, so none of its operations is offered. Never leaves this
 * folder.
 */
export class DocumentTooLarge extends DocumentFault {}

/**
 * An argument that cannot be sent. Its message names the argument and is meant for the model. Never leaves this
 * folder.
 */
export class ArgumentFault extends Error {
  override readonly name = "ArgumentFault";
}

/** Maximum number of characters of a document's text that a message repeats. */
const QUOTE_LIMIT = 200;

/** Marks the place where text in a message was cut. The characters before it may be the beginning of a secret. */
export const CUT = "…";

/** A name from the document, cut and in quotes. */
export function quote(text: string): string {
  return JSON.stringify(text.length > QUOTE_LIMIT ? `${firstOf(text, QUOTE_LIMIT)}${CUT}` : text);
}

/** Drops half of a character at the end: replaced by another character, it would hide where a secret was cut. */
function firstOf(text: string, characters: number): string {
  return text.slice(0, characters).replace(/[\uD800-\uDBFF]$/, "");
}
