/**
 * Why a document cannot be taken, or one of its operations: a sentence without the connector's name and without the full
 * stop. Never leaves this folder.
 */
export class DocumentFault extends Error {
  override readonly name = "DocumentFault";
}

/** Why no operation of a document is taken: it asks for too much work as a whole. Never leaves this folder. */
export class DocumentTooLarge extends DocumentFault {}

/** An argument that cannot be sent. Its message names the argument and is for the model. Never leaves this folder. */
export class ArgumentFault extends Error {
  override readonly name = "ArgumentFault";
}

/** Characters of what a document says that a message repeats. */
const QUOTE_LIMIT = 200;

/** Stands in a message where a text was cut; what is in front of it may end in a part of a secret. */
export const CUT = "…";

/** What a document calls something, in quotes, cut. */
export function quote(text: string): string {
  return JSON.stringify(text.length > QUOTE_LIMIT ? `${firstOf(text, QUOTE_LIMIT)}${CUT}` : text);
}

/** Half of a character at the end is left out: as a sign of its own it would hide where a secret was cut. */
function firstOf(text: string, characters: number): string {
  return text.slice(0, characters).replace(/[\uD800-\uDBFF]$/, "");
}
