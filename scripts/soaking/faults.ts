/** Something that must not happen. */
export interface Fault {
  /** The promise that it breaks. */
  readonly check: string;
  /** The kill after which it was seen; null if it was found at the end. */
  readonly round: number | null;
  readonly text: string;
}

/** The faults found so far. */
export class Faults {
  readonly found: Fault[] = [];
  /** The next kill, or the one that just happened. */
  round: number | null = 0;

  add(check: string, text: string): void {
    this.found.push({ check, round: this.round, text });
  }

  /** The texts of a check's faults. */
  of(check: string): string[] {
    return this.found.filter((fault) => fault.check === check).map(({ text }) => text);
  }
}
