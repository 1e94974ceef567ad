import { Allowance } from "../allowance.ts";
import type { UpstreamParts } from "../parts.ts";

/** Characters of its standard error that an error repeats. */
const TAIL_CHARACTERS = 4_096;
/** So many are kept, since of a text with secrets less is left to show. */
const KEPT_CHARACTERS = TAIL_CHARACTERS + 12_288;
/** Lines that go to the log. */
const LINES_A_MINUTE = 60;
const LINE_CHARACTERS = 1_000;

type SaidParts = Pick<UpstreamParts, "clock" | "log" | "mask" | "name">;

/** What a child writes on its standard error: its end is kept for error messages, some of it goes to the log. */
export class Said {
  readonly #parts: SaidParts;
  readonly #allowance: Allowance;
  readonly #decoder = new TextDecoder();
  #kept = "";
  #isCut = false;
  /** The line that has not ended yet. */
  #line = "";

  constructor(parts: SaidParts) {
    this.#parts = parts;
    this.#allowance = new Allowance(parts.clock, LINES_A_MINUTE, 60_000);
  }

  push(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    const kept = this.#kept + text;
    this.#kept = kept.slice(-KEPT_CHARACTERS);
    this.#isCut ||= kept.length > KEPT_CHARACTERS;
    const lines = (this.#line + text).split("\n");
    // One character more says that it was cut; what comes after that is not looked at.
    this.#line = (lines.pop() ?? "").slice(0, LINE_CHARACTERS + 1);
    for (const line of lines) this.#log(line);
  }

  /** The last of it, masked. Empty when it said nothing. */
  tail(): string {
    // A child that was killed may have been about to write the rest of a secret.
    const masked = this.#parts.mask.text(this.#kept, { start: this.#isCut, end: true });
    return masked.slice(-TAIL_CHARACTERS).toWellFormed().trim();
  }

  #log(line: string): void {
    const { log, mask, name } = this.#parts;
    if (line.trim() === "" || !this.#allowance.take()) return;
    const shown = mask.text(line.slice(0, LINE_CHARACTERS), { end: line.length > LINE_CHARACTERS });
    log.debug("a connector's program says", {
      connector: name,
      line: shown.toWellFormed(),
    });
  }
}
