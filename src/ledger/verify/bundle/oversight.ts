import type { ReportEntryFields } from "../../article14/format/entry.ts";
import { oversightHeader, oversightRow } from "../../article14/format/oversight.ts";
import type { VerificationReport } from "../report.ts";
import type { FileCursor } from "./cursor.ts";

const ENCODER = new TextEncoder();

/** Recomputes `oversight.csv` from the entries and compares. */
export class OversightWalk {
  readonly #cursor: FileCursor;
  #difference: { readonly seq: number | undefined } | null = null;
  #rows = 0;

  constructor(cursor: FileCursor) {
    this.#cursor = cursor;
  }

  /** Number of rows, that is, of people's decisions among the entries. */
  get rows(): number {
    return this.#rows;
  }

  async begin(): Promise<void> {
    await this.#expect(oversightHeader(), undefined);
  }

  /** Called with each included entry, in order. */
  async visit(entry: ReportEntryFields): Promise<void> {
    const row = oversightRow(entry);
    if (row === undefined) return;
    this.#rows += 1;
    await this.#expect(row, entry.seq);
  }

  /**
   * @param areEntriesWhole Whether every entry was present. Otherwise it is impossible to tell which of the two files
   *   was changed.
   */
  async end(report: VerificationReport, areEntriesWhole: boolean): Promise<void> {
    if (await this.#cursor.drain()) this.#difference ??= { seq: undefined };
    if (!this.#difference || !areEntriesWhole) return;
    const { seq } = this.#difference;
    report.tampered(
      "oversight_differs",
      seq === undefined
        ? "oversight.csv does not match the entries: a row was added, or the header was changed."
        : `oversight.csv contradicts entry ${seq}, or omits it.`,
      seq,
    );
  }

  async #expect(text: string, seq: number | undefined): Promise<void> {
    if (this.#difference) return;
    if (!(await this.#cursor.takes(ENCODER.encode(text)))) this.#difference = { seq };
  }
}
