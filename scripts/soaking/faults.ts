/** Something that must not be. */
export interface Fault {
  /** Which promise it breaks. */
  readonly check: string;
  /** The kill after which it was seen; null for what was found at the end. */
  readonly round: number | null;
  readonly text: string;
}

/** What was found so far. */
export class Faults {
  readonly found: Fault[] = [];
  /** The kill that comes next, or has just been. */
  round: number | null = 0;

  add(check: string, text: string): void {
    this.found.push({ check, round: this.round, text });
  }

  /** Texts alone. */
  of(check: string): string[] {
    return this.found.filter((fault) => fault.check === check).map(({ text }) => text);
  }
}
