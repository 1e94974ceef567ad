/** Why an archive cannot be read or must not be trusted. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";

  /**
   * True if the file is not an archive or only part of one. Otherwise it was altered, or made so that programs read
   * it differently.
   */
  readonly isIncomplete: boolean;

  constructor(message: string, isIncomplete = false) {
    super(message);
    this.isIncomplete = isIncomplete;
  }
}

/** Quotes a name from an archive, which may contain anything. */
export function shown(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
}
