import { has } from "./characters.ts";
import { parse, Unknown } from "./parse.ts";
import { type Paths, pathsOf, type Steps } from "./paths.ts";

const MOST_CHARACTERS = 300;
/** For each character of a text. Most expressions that people write need ten, four numbers of an IPv4 address some hundred. */
const MOST_TRIES = 256;
/** Of one expression; what needs more to be judged is not shown to be harmless. */
const MOST_STEPS = 25_000;

/**
 * How many tries a matcher that goes back, as all of JavaScript's do, makes at most for each character of any text; undefined
 * where there is no such bound, or none that is small, or it cannot be told.
 *
 * The rule: follow all ways at once that the matcher may take through the expression, beginning at each character where it
 * may begin, and count them with their multiplicity, for every text there can be. Ways that a matcher takes one after the
 * other are the same ways, and each is taken once. If there are never more than 256 of them at a character, then the whole
 * takes at most 256 steps for each, which is linear in the text. `^[a-z]+-[a-z]+$` has one at a time; `^(a|a)+$` and `^a?a?a?…`
 * double with each character, `^.*x.*y` and, without `^`, `[a-z]+$` get one more with each: those are left out.
 *
 * There are finitely many sets of ways to look at, since none has more than 256, but there may be too many: then it cannot be
 * told. An unbounded repetition of a group is left out as well, whatever its ways: see `pathsOf`.
 *
 * Libraries: safe-regex2 looks at how deep stars are nested, and so lets `^.*x.*y` through; recheck searches for an attack,
 * and is far larger than this.
 *
 * @param steps what may be spent on all expressions together
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
    return false; // what is no expression can be left out like one that is harmful
  }
}

/** Ways that are alive after a character, by place. */
type Alive = ReadonlyMap<number, number>;

/** @throws Unknown past `MOST_TRIES`, or where the steps are spent */
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

/** What the ways that are alive, and those that begin here, want to take next, and how many that are with dead ends. */
function wanted(paths: Paths, alive: Alive, isStart: boolean): { ways: Alive; tries: number } {
  const ways = new Map<number, number>();
  const add = (to: number, count: number): void => void ways.set(to, (ways.get(to) ?? 0) + count);
  // The beginning is looked at once for each character, also where it leads to nothing.
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

/** What is alive after the next character, for each character that makes a difference. */
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
