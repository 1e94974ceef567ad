import { Allowance } from "../allowance.ts";
import type { UpstreamParts } from "../parts.ts";

/** Bytes of its standard error that an error repeats. */
const TAIL_BYTES = 4_096;
/** Kept in front of them, so that a secret which the cut would halve is masked whole. */
const MARGIN_BYTES = 12_288;
/** Lines that go to the log. */
const LINES_A_MINUTE = 60;
const LINE_CHARACTERS = 1_000;

/** What a child writes on its standard error: its end is kept for error messages, some of it goes to the log. */
export class Said {
  readonly #parts: UpstreamParts;
  readonly #allowance: Allowance;
  readonly #decoder = new TextDecoder();
  #kept = "";
  #line = "";

  constructor(parts: UpstreamParts) {
    this.#parts = parts;
    this.#allowance = new Allowance(parts.clock, LINES_A_MINUTE, 60_000);
  }

  push(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    this.#kept = (this.#kept + text).slice(-(TAIL_BYTES + MARGIN_BYTES));
    const lines = (this.#line + text).split("\n");
    this.#line = (lines.pop() ?? "").slice(0, LINE_CHARACTERS + MARGIN_BYTES);
    for (const line of lines) this.#log(line);
  }

  /** The last of it, masked. Empty when it said nothing. */
  tail(): string {
    return this.#parts.mask.text(this.#kept).slice(-TAIL_BYTES).toWellFormed().trim();
  }

  #log(line: string): void {
    const { log, mask, name } = this.#parts;
    if (line.trim() === "" || !this.#allowance.take()) return;
    log.debug("a connector's program says", {
      connector: name,
      line: mask.text(line).slice(0, LINE_CHARACTERS).toWellFormed(),
    });
  }
}
