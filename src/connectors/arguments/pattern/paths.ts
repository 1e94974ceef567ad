import type { Characters } from "./characters.ts";
import { type Expression, Unknown } from "./parse.ts";

/** Budget for the analysis, in edges created and ways counted. Shared by all expressions of a schema. */
export interface Steps {
  left: number;
}

/** The number of ways that lead to a place without consuming a character. */
interface Way {
  readonly to: number;
  readonly count: number;
  /** Passes through `^`, so it is only possible at the start of the text. */
  readonly anchored: boolean;
}

/**
 * An expression as places that each consume one character, after Glushkov ("The abstract theory of automata", 1961),
 * extended by the number of ways from place to place: if there are two, a backtracking matcher tries both.
 */
export interface Paths {
  readonly takes: readonly Characters[];
  readonly first: readonly Way[];
  /** By place: the ways to the places that can follow. */
  readonly follow: readonly (readonly Way[])[];
  /** By place: the number of ways from it to the end. */
  readonly last: readonly number[];
  /** The number of ways to the end that consume nothing. */
  readonly empty: number;
}

/** Nested lists of ways, since `x{0,1000}` is assembled a thousand times. */
type Ways = readonly (Way | Ways)[];

interface Fragment {
  readonly first: readonly Way[];
  readonly last: Ways;
  /** The number of ways through the fragment that consume nothing, and of those without `^`. */
  readonly empty: number;
  readonly emptyFree: number;
}

/** The most places, after bounded repetitions are expanded. */
const MOST_PLACES = 1_000;

/** @throws Unknown if the expression is too large, or repeats a group without a bound */
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

  /** `x{2,4}` becomes `xx(x(x)?)?`; `x{2,}` becomes `xx` whose second `x` also leads to itself. */
  function repeat(inner: Expression, least: number, most: number): Fragment {
    if (most === 0) return build({ kind: "nothing" });
    if (Math.max(least, most === Number.POSITIVE_INFINITY ? 1 : most) > MOST_PLACES) throw new Unknown();
    let whole: Fragment;
    let before = least;
    if (most === Number.POSITIVE_INFINITY) {
      // The engine records each iteration of a group: long texts exhaust its memory, and it then reports no match.
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
