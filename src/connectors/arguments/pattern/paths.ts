import type { Characters } from "./characters.ts";
import { type Expression, Unknown } from "./parse.ts";

/** Work that is done here, in edges made and ways counted. Shared by all expressions of a schema. */
export interface Steps {
  left: number;
}

/** How many ways lead somewhere without taking a character on the way. */
interface Way {
  readonly to: number;
  readonly count: number;
  /** Through `^`, so that it leads there from the text's start alone. */
  readonly anchored: boolean;
}

/**
 * An expression as places that each take one character, after Glushkov ("The abstract theory of automata", 1961), but with
 * the number of ways from place to place: where there are two, a matcher that goes back tries both.
 */
export interface Paths {
  readonly takes: readonly Characters[];
  readonly first: readonly Way[];
  /** By place: where it goes on. */
  readonly follow: readonly (readonly Way[])[];
  /** By place: how many ways lead from it to the end. */
  readonly last: readonly number[];
  /** Ways to the end that take nothing. */
  readonly empty: number;
}

/** Ways in lists in lists: that of `x{0,1000}` is put together a thousand times. */
type Ways = readonly (Way | Ways)[];

interface Fragment {
  readonly first: readonly Way[];
  readonly last: Ways;
  /** Ways through it that take nothing, and those of them without `^`. */
  readonly empty: number;
  readonly emptyFree: number;
}

/** Of what bounded repetition is written out to. */
const MOST_PLACES = 1_000;

/** @throws Unknown where it is too large, or repeats a group without a bound */
export function pathsOf(expression: Expression, steps: Steps): Paths {
  const takes: Characters[] = [];
  const follow: Way[][] = [];

  function spend(amount: number): void {
    steps.left -= amount;
    if (steps.left < 0) throw new Unknown();
  }

  function build(node: Expression): Fragment {
    spend(1);
    switch (node.kind) {
      case "nothing":
        return { first: [], last: [], empty: 1, emptyFree: 1 };
      case "start":
        return { first: [], last: [], empty: 1, emptyFree: 0 };
      case "set":
        return place(node.characters);
      case "group":
        return build(node.inner);
      case "sequence":
        return node.parts.map(build).reduce(sequence, { first: [], last: [], empty: 1, emptyFree: 1 });
      case "choice":
        return node.parts.map(build).reduce(choice);
      case "repeat":
        return repeat(node.inner, node.least, node.most);
    }
  }

  function place(characters: Characters): Fragment {
    if (takes.length >= MOST_PLACES) throw new Unknown();
    const way = { to: takes.length, count: 1, anchored: false };
    takes.push(characters);
    follow.push([]);
    return { first: [way], last: [way], empty: 0, emptyFree: 0 };
  }

  function flat(ways: Ways): readonly Way[] {
    const found: Way[] = [];
    const waiting: (Way | Ways)[] = [ways];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      spend(1);
      if ("to" in next) found.push(next);
      else for (const each of next) waiting.push(each);
    }
    return found;
  }

  function join(ends: Ways, to: readonly Way[]): void {
    const from = flat(ends);
    spend(from.length * to.length);
    for (const end of from) {
      for (const begin of to) follow[end.to]?.push({ ...begin, count: end.count * begin.count });
    }
  }

  function sequence(a: Fragment, b: Fragment): Fragment {
    join(a.last, b.first);
    const through: Way[] = [];
    const anchored = a.empty - a.emptyFree;
    for (const way of b.first) {
      if (a.emptyFree > 0) through.push({ ...way, count: way.count * a.emptyFree });
      if (anchored > 0) through.push({ ...way, count: way.count * anchored, anchored: true });
    }
    spend(a.first.length + through.length);
    return {
      first: [...a.first, ...through],
      last: b.empty > 0 ? [b.last, times(a.last, b.empty)] : b.last,
      empty: a.empty * b.empty,
      emptyFree: a.emptyFree * b.emptyFree,
    };
  }

  function choice(a: Fragment, b: Fragment): Fragment {
    spend(a.first.length + b.first.length);
    return {
      first: [...a.first, ...b.first],
      last: [a.last, b.last],
      empty: a.empty + b.empty,
      emptyFree: a.emptyFree + b.emptyFree,
    };
  }

  function optional(a: Fragment): Fragment {
    return { ...a, empty: a.empty + 1, emptyFree: a.emptyFree + 1 };
  }

  /** `x{2,4}` is `xx(x(x)?)?`, `x{2,}` is `xx` whose second `x` leads to itself as well. */
  function repeat(inner: Expression, least: number, most: number): Fragment {
    if (most === 0) return build({ kind: "nothing" });
    if (Math.max(least, most === Number.POSITIVE_INFINITY ? 1 : most) > MOST_PLACES) throw new Unknown();
    let whole: Fragment;
    let before = least;
    if (most === Number.POSITIVE_INFINITY) {
      // The engine keeps a note of each turn of a group: long texts exhaust it, and then it says that nothing fits.
      if (inner.kind !== "set") throw new Unknown();
      whole = build(inner);
      join(whole.last, whole.first);
      if (least === 0) whole = optional(whole);
      else before -= 1;
    } else {
      whole = build({ kind: "nothing" });
      for (let each = least; each < most; each += 1) whole = optional(sequence(build(inner), whole));
    }
    for (let each = 0; each < before; each += 1) whole = sequence(build(inner), whole);
    return whole;
  }

  function times(ways: Ways, factor: number): Ways {
    return factor === 1 ? ways : flat(ways).map((way) => ({ ...way, count: way.count * factor }));
  }

  const root = build(expression);
  const last = takes.map(() => 0);
  for (const { to, count } of flat(root.last)) last[to] = (last[to] ?? 0) + count;
  return { takes, first: root.first, follow, last, empty: root.empty };
}
