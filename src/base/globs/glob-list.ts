import { compileGlob, type Glob, stepsOf } from "./compile.ts";

const CACHE_LIMIT = 10_000;
const cache = new Map<string, Glob>();
/** Lists with more steps than this remember their results: a search takes longer than looking up a name. */
const REMEMBERED_FROM = 64;
/** Number of names that a list remembers. More than a task has tools. */
const NAMES = 256;

/** A list of patterns, compiled. All MUST be globs (see `isGlob`). */
export class GlobList {
  /** Whether one of the patterns matches every text. */
  readonly matchesAll: boolean;
  /** How long matching one name takes (see `stepsOf`). At least 1. */
  readonly steps: number;
  readonly #exact: ReadonlySet<string>;
  readonly #globs: readonly Glob[];
  /** Earlier results by name. Emptied when full. */
  readonly #known = new Map<string, boolean>();

  constructor(patterns: readonly string[]) {
    const hasWildcards = (pattern: string) => /[*?]/.test(pattern);
    const globs = [...new Set(patterns.filter(hasWildcards))];
    this.matchesAll = globs.some((pattern) => /^\*+$/.test(pattern));
    this.#exact = new Set(patterns.filter((pattern) => !hasWildcards(pattern)));
    this.#globs = this.matchesAll ? [] : globs.map(compiled);
    this.steps = this.matchesAll ? 1 : globs.reduce((sum, pattern) => sum + stepsOf(pattern), 1);
  }

  matches(text: string): boolean {
    if (this.matchesAll || this.#exact.has(text)) return true;
    if (this.steps < REMEMBERED_FROM) return this.#search(text);
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const found = this.#search(text);
    if (this.#known.size >= NAMES) this.#known.clear();
    this.#known.set(text, found);
    return found;
  }

  #search(text: string): boolean {
    for (const glob of this.#globs) if (glob(text)) return true;
    return false;
  }
}

function compiled(pattern: string): Glob {
  const known = cache.get(pattern);
  if (known) return known;
  const made = compileGlob(pattern);
  if (cache.size >= CACHE_LIMIT) cache.clear();
  cache.set(pattern, made);
  return made;
}
