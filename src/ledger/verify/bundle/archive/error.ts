/** Why an archive cannot be read, or must not be believed. */
export class ArchiveError extends Error {
  override readonly name = "ArchiveError";

  /** The file is not an archive, or only a part of one. Otherwise it was changed, or made so that other programs read it differently. */
  readonly isIncomplete: boolean;

  constructor(message: string, isIncomplete = false) {
    super(message);
    this.isIncomplete = isIncomplete;
  }
}

/** Quotes a name from an archive, which may be anything. */
export function shown(name: string): string {
  return JSON.stringify(name.length > 80 ? `${name.slice(0, 80)}…` : name);
}
