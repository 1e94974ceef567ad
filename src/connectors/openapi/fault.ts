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

/** What a document calls something, in quotes, cut. */
export function quote(text: string): string {
  return JSON.stringify(text.length > QUOTE_LIMIT ? `${text.slice(0, QUOTE_LIMIT).toWellFormed()}…` : text);
}
