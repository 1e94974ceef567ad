/**
 * A document that can't be read. `field` is a JSON pointer to the request's field at fault ("/content_base64", "/text" or
 * "/content_type"); the message is for the user and says what is wrong with that field ("holds no text").
 */
export class UnreadableDocument extends Error {
  override readonly name = "UnreadableDocument";
  readonly field: string;

  constructor(field: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.field = field;
  }
}

/** What a reader of one format finds wrong with its input. `read.ts` knows in which field that input came. */
export class Fault extends Error {
  override readonly name = "Fault";
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
