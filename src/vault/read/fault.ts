/**
 * A document that cannot be read. `field` is a JSON pointer to the request's invalid field ("/content_base64",
 * "/text" or "/content_type"); the message tells the user what is wrong with it ("contains no text").
 */
export class UnreadableDocument extends Error {
  override readonly name = "UnreadableDocument";
  readonly field: string;

  constructor(field: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.field = field;
  }
}

/** An error in the input of one format's reader. `read.ts` knows which field the input came from. */
export class Fault extends Error {
  override readonly name = "Fault";
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
