import { counted, type Report } from "./report.ts";

const MOST_REMEMBERED = 32;

/** What checkpoints of one origin (the stored ones, or those from elsewhere) say of the entries, in the order of their sizes. */
export class Track {
  /** Those whose signature is good. */
  count = 0;
  /** The largest size whose root is that of the entries. */
  lastGood = 0;
  /** The smallest size with another root, after which no right one comes; 0 where there is none. */
  firstWrong = 0;
  /** How many come from there on. */
  wrong = 0;
  /** The largest size past the ledger's end. */
  beyond = 0;
  readonly #wrong: number[] = [];

  isRight(size: number, report: Report): void {
    // The later one includes the entries of these: it is they that are wrong.
    for (const wrong of this.#wrong.splice(0)) {
      report.tampered(
        "checkpoint_differs",
        `The checkpoint over ${counted(wrong)} entries has another root than they have, though a later one agrees with them.`,
        wrong,
      );
    }
    this.lastGood = size;
    this.firstWrong = 0;
    this.wrong = 0;
  }

  isWrong(size: number): void {
    this.wrong += 1;
    if (this.firstWrong === 0) this.firstWrong = size;
    if (this.#wrong.length < MOST_REMEMBERED) this.#wrong.push(size);
  }
}
