import { has } from "./characters.ts";
import { parse, Unknown } from "./parse.ts";
import { type Paths, pathsOf, type Steps } from "./paths.ts";

const MOST_CHARACTERS = 300;
/**
 * Per character of a text. Most expressions that people write need ten; the four numbers of an IPv4 address need
 * about 100.
 */
const MOST_TRIES = 256;
/** Per expression. Expressions that need more steps to analyse are not proven harmless. */
const MOST_STEPS = 25_000;

/**
 * The most tries per character that a backtracking matcher, such as JavaScript's, makes on any text. Undefined if
 * there is no bound, the bound is above 256, or it cannot be determined.
 *
 * The rule: follow all ways that the matcher may take through the expression at once, starting at each character
 * where it may start, and count them with their multiplicity, forevery possible text. A matcher takes the same ways
 * one after the other, each once. If there are never more than 256 of them at a character, the match takes at most
 * 256 steps per character, which is linear in the text. `^[a-z]+-[a-z]+$` has one at a time. `^(a|a)+$` and
 * `^a?a?a?…` double with each character; `^.*x.*y` and, without `^`, `[a-z]+$` gain one per character: those are
 * rejected.
 *
 * The sets of ways are finitely many, since none has more than 256, but there may be too many to visit: then the
 * bound cannot be determined. An unbounded repetition of a group is always rejected: see `pathsOf`.
 *
 * Libraries: safe-regex2 checks how deeply stars are nested, and so accepts `^.*x.*y`; recheck searches for an
 * attack, and is far larger than this.
 *
 * @param steps the budget for all expressions together
 */
export function triesOf(source: string, steps: Steps): number | undefined {
  if (steps.left <= 0 || source.length > MOST_CHARACTERS || !isExpression(source)) return undefined;
  const own: Steps = { left: Math.min(MOST_STEPS, steps.left) };
  const given = own.left;
  try {
    return mostTries(pathsOf(parse(source), own), own);
  } catch (error) {
    if (error instanceof Unknown) return undefined;
    throw error;
  } finally {
    steps.left -= given - Math.max(0, own.left);
  }
}

function isExpression(source: string): boolean {
  try {
    new RegExp(source, "u");
    return true;
  } catch {
    return false; // an invalid expression is dropped, like a harmful one
  }
}

/** The number of active ways after a character, by place. */
type Alive = ReadonlyMap<number, number>;

/** @throws Unknown above `MOST_TRIES`, or if the steps are used up */
function mostTries(paths: Paths, steps: Steps): number {
  const seen = new Set<string>();
  const waiting: Alive[] = [];
  let most = 0;
  function visit(alive: Alive, isStart: boolean): void {
    const key = isStart ? "^" : [...alive].sort(([a], [b]) => a - b).join(";");
    if (seen.has(key)) return;
    seen.add(key);
    const begun = wanted(paths, alive, isStart);
    most = Math.max(most, begun.tries);
    if (most > MOST_TRIES) throw new Unknown();
    for (const next of afterEach(paths, begun.ways, steps)) waiting.push(next);
  }
  visit(new Map(), true);
  for (let next = waiting.pop(); next; next = waiting.pop()) visit(next, false);
  return most;
}

/** The ways that the active ways, and those that start here, can take next. `tries` also counts dead ends. */
function wanted(paths: Paths, alive: Alive, isStart: boolean): { ways: Alive; tries: number } {
  const ways = new Map<number, number>();
  const add = (to: number, count: number): void => void ways.set(to, (ways.get(to) ?? 0) + count);
  // The start is tried once per character, even if it leads nowhere.
  let tries = 1 + paths.empty;
  for (const { to, count, anchored } of paths.first) {
    tries += count;
    if (isStart || !anchored) add(to, count);
  }
  for (const [place, count] of alive) {
    tries += count * (1 + (paths.last[place] ?? 0));
    for (const way of paths.follow[place] ?? []) {
      tries += count * way.count;
      add(way.to, count * way.count);
    }
    if (tries > MOST_TRIES) break;
  }
  return { ways, tries };
}

/** The active ways after the next character, for each character that makes a difference. */
function afterEach(paths: Paths, ways: Alive, steps: Steps): Alive[] {
  const edges = new Set<number>();
  for (const place of ways.keys()) {
    for (const [first, last] of paths.takes[place] ?? []) edges.add(first).add(last + 1);
  }
  return [...edges].map((character) => {
    spendOn(steps, ways.size + 1);
    return new Map([...ways].filter(([place]) => has(paths.takes[place] ?? [], character)));
  });
}

function spendOn(steps: Steps, amount: number): void {
  steps.left -= amount;
  if (steps.left < 0) throw new Unknown();
}
