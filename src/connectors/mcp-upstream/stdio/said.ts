import { Allowance } from "../allowance.ts";
import type { UpstreamParts } from "../parts.ts";

/** Characters of standard error that an error repeats. */
const TAIL_CHARACTERS = 4_096;
/** Characters kept: masking may leave fewer of them to show. */
const KEPT_CHARACTERS = TAIL_CHARACTERS + 12_288;
/** Lines written to the log. */
const LINES_A_MINUTE = 60;
const LINE_CHARACTERS = 1_000;

type SaidParts = Pick<UpstreamParts, "clock" | "log" | "mask" | "name">;

/** A child's standard error: keeps its end for error messages, and logs some of it. */
export class Said {
  readonly #parts: SaidParts;
  readonly #allowance: Allowance;
  readonly #decoder = new TextDecoder();
  #kept = "";
  #isCut = false;
  /** The current line, which has not ended yet. */
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
    // One extra character marks the line as cut; the rest is dropped.
    this.#line = (lines.pop() ?? "").slice(0, LINE_CHARACTERS + 1);
    for (const line of lines) this.#log(line);
  }

  /** The end of the output, masked. Empty if there was none. */
  tail(): string {
    // A killed child may have been about to write the rest of a secret.
    const masked = this.#parts.mask.text(this.#kept, { start: this.#isCut, end: true });
    return masked.slice(-TAIL_CHARACTERS).toWellFormed().trim();
  }

  #log(line: string): void {
    const { log, mask, name } = this.#parts;
    if (line.trim() === "" || !this.#allowance.take()) return;
    const shown = mask.text(line.slice(0, LINE_CHARACTERS), { end: line.length > LINE_CHARACTERS });
    log.debug("output of a connector's program", {
      connector: name,
      line: shown.toWellFormed(),
    });
  }
}
