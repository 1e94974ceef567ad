import { Allowance } from "../allowance.ts";
import type { UpstreamParts } from "../parts.ts";
import { chunksOf } from "./chunks.ts";

const LINE_FEED = 0x0a;
/** Maximum number of characters of standard error that an error repeats. */
const TAIL_CHARACTERS = 4_096;
/** Maximum number of characters kept: masking may leave fewer of them to show. */
const KEPT_CHARACTERS = TAIL_CHARACTERS + 12_288;
/** Maximum number of lines written to the log per minute. */
const LINES_A_MINUTE = 60;
const LINE_CHARACTERS = 1_000;

type StderrLogParts = Pick<UpstreamParts, "clock" | "inflow" | "log" | "mask" | "name">;

/** Maximum number of bytes handled at once. */
const SLICE = 16 * 1024;

/** A child's standard error: keeps its end for error messages, and logs some of it. */
export class StderrLog {
  readonly #parts: StderrLogParts;
  readonly #allowance: Allowance;
  readonly #decoder = new TextDecoder();
  #kept = "";
  #isCut = false;
  /** The current line, which has not ended yet. */
  #line = "";

  constructor(parts: StderrLogParts) {
    this.#parts = parts;
    this.#allowance = new Allowance(parts.clock, LINES_A_MINUTE, 60_000);
  }

  /** Reads to the end. Never throws for a pipe that breaks. */
  async read(output: AsyncIterable<Uint8Array>): Promise<void> {
    for await (const chunk of chunksOf(output)) {
      for (let from = 0; from < chunk.length; from += SLICE) {
        const slice = chunk.subarray(from, from + SLICE);
        const wait = this.#parts.inflow.take({ bytes: slice.length, lines: linesIn(slice) });
        if (wait) await wait;
        this.push(slice);
      }
    }
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

function linesIn(chunk: Uint8Array): number {
  let count = 0;
  for (let at = chunk.indexOf(LINE_FEED); at !== -1; at = chunk.indexOf(LINE_FEED, at + 1)) count++;
  return count;
}
