import { counted, type VerificationReport } from "./report.ts";

const MOST_REMEMBERED = 32;

/** What the checkpoints of one source (stored, or kept elsewhere) show about the entries, in order of size. */
export class CheckpointTrack {
  /** Number of checkpoints with a valid signature. */
  count = 0;
  /** The largest size whose root matches the entries. */
  lastGood = 0;
  /** The smallest size with a different root after which none matches; 0 if there is none. */
  firstWrong = 0;
  /** Number of checkpoints from there on with a different root. */
  wrong = 0;
  /** The largest size past the ledger's end. */
  beyond = 0;
  readonly #wrong: number[] = [];

  isRight(size: number, report: VerificationReport): void {
    // This checkpoint also covers the entries of the earlier ones that differ, so those checkpoints are wrong, not
    // the entries.
    for (const wrong of this.#wrong.splice(0)) {
      report.tampered(
        "checkpoint_differs",
        `The checkpoint of ${counted(wrong)} entries has a different root from the entries, although a later one agrees with them.`,
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
