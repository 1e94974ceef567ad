import { ownText } from "../own-text.ts";
import { bytesOfGlob, compileGlob, type Glob, stepsOf } from "./compile.ts";

/** Lists with more steps than this remember their results: a search takes longer than looking up a name. */
const REMEMBERED_FROM = 64;
/** Number of names that a list remembers. More than a task has tools. */
const NAMES = 256;
/** Bytes of memory that a list takes without its patterns, and a remembered result without its name. */
const [LIST, RESULT] = [512, 128];

const NO_NAMES: ReadonlySet<string> = new Set();

/** A list of patterns, compiled. All MUST be globs (see `isGlob`). */
export class GlobList {
  /** Whether one of the patterns matches every text. */
  readonly matchesAll: boolean;
  /** How long matching one name takes (see `stepsOf`). At least 1. */
  readonly steps: number;
  readonly #exact: ReadonlySet<string>;
  readonly #globs: readonly Glob[];
  readonly #grow: (bytes: number) => void;
  /** Earlier results by name. Emptied when full. */
  readonly #known = new Map<string, boolean>();
  /** Estimated bytes of `#known`. */
  #knownBytes = 0;

  /** @param grow is called with the bytes of memory that the list takes, then with what it gains and releases */
  constructor(patterns: readonly string[], grow: (bytes: number) => void) {
    const hasWildcards = (pattern: string) => /[*?]/.test(pattern);
    const globs = [...new Set(patterns.filter(hasWildcards))];
    const exact = patterns.filter((pattern) => !hasWildcards(pattern));
    this.matchesAll = globs.some((pattern) => /^\*+$/.test(pattern));
    this.#exact = exact.length === 0 ? NO_NAMES : new Set(exact);
    this.#globs = this.matchesAll ? [] : globs.map(compileGlob);
    this.steps = this.matchesAll ? 1 : globs.reduce((sum, pattern) => sum + stepsOf(pattern), 1);
    this.#grow = grow;
    const names = exact.reduce((sum, name) => sum + RESULT + name.length, LIST);
    grow(this.matchesAll ? names : globs.reduce((sum, pattern) => sum + bytesOfGlob(pattern), names));
  }

  matches(text: string): boolean {
    if (this.matchesAll || this.#exact.has(text)) return true;
    if (this.steps < REMEMBERED_FROM) return this.#search(text);
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const found = this.#search(text);
    this.#remember(text, found);
    return found;
  }

  #search(text: string): boolean {
    for (const glob of this.#globs) if (glob(text)) return true;
    return false;
  }

  #remember(text: string, found: boolean): void {
    if (this.#known.size >= NAMES) {
      this.#known.clear();
      this.#grow(-this.#knownBytes);
      this.#knownBytes = 0;
    }
    const bytes = RESULT + 2 * text.length;
    this.#known.set(ownText(text), found);
    this.#knownBytes += bytes;
    this.#grow(bytes);
  }
}
