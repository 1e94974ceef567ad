import { formsOf } from "./forms.ts";
import { MatcherCache } from "./matcher-cache.ts";
import { overlap } from "./overlap.ts";
import type { MatchedSpan } from "./pattern-matcher.ts";

const REDACTED = "[redacted]";

const matchers = new MatcherCache();

/** The ends at which the text was already cut off. */
export interface TextCuts {
  readonly start?: boolean;
  readonly end?: boolean;
}

/** Removes secrets from an upstream's output. */
export interface Mask {
  /**
   * At a cut, text that may be part of a secret is removed too, since a partial secret would not be found. This MUST
   * come before white space is removed and before the text is cut again: either could hide part of a secret from the
   * mask.
   */
  text(text: string, cuts?: TextCuts): string;
  /**
   * Removes the secrets from every string of a JSON value, including keys. Returns the same object if there are none.
   * A number whose digits are a secret becomes text.
   */
  json<Value>(value: Value): Value;
}

/**
 * Replaces each secret, in every form of `formsOf`, by "[redacted]". Secrets that overlap or touch become a single
 * "[redacted]", so that no part remains. The time does not depend on the number of secrets.
 */
export function createMask(secrets: readonly string[]): Mask {
  const exact = new Set(secrets.filter((secret) => secret !== ""));
  const forms = (): string[] => [...new Set([...exact].flatMap(formsOf))];
  const key = {};
  const text = (given: string, cuts: TextCuts = {}): string => {
    if (exact.size === 0) return given;
    const from = cuts.start ? longest(forms(), (form) => overlap(form, given, form.length - 1)) : 0;
    const to =
      given.length - (cuts.end ? longest(forms(), (form) => overlap(given, form, form.length - 1)) : 0);
    return masked(given, matchers.get(key, forms).find(given), from, to);
  };
  const leaf = (value: unknown): unknown => {
    if (typeof value === "string") return text(value);
    return typeof value === "number" && exact.has(String(value)) ? REDACTED : value;
  };
  return {
    text,
    json<Value>(value: Value): Value {
      if (exact.size === 0 || !isTouched(value, leaf)) return value;
      return copied(value, leaf, text) as Value;
    },
  };
}

/** The masked text from `from` to `to`. Secrets are searched for in the whole text. */
function masked(text: string, spans: readonly MatchedSpan[], from: number, to: number): string {
  let result = "";
  let shown = from;
  for (const [start, end] of spans) {
    if (end <= from || start >= to) continue;
    result += text.slice(shown, Math.max(start, from)) + REDACTED;
    shown = end;
  }
  return shown < to ? result + text.slice(shown, to) : result;
}

function longest(forms: readonly string[], length: (form: string) => number): number {
  return forms.reduce((most, form) => Math.max(most, length(form)), 0);
}

type Leaf = (value: unknown) => unknown;

/** Without recursion, like `copied`: deeply nested data would exhaust the stack. */
function isTouched(root: unknown, leaf: Leaf): boolean {
  const waiting: unknown[] = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value !== "object" || value === null) {
      if (leaf(value) !== value) return true;
    } else if (Array.isArray(value)) {
      for (const item of value) waiting.push(item);
    } else {
      for (const [key, item] of Object.entries(value)) {
        if (leaf(key) !== key) return true;
        waiting.push(item);
      }
    }
  }
  return false;
}

/** An object or list whose copy exists but is still empty. */
type PendingCopy = readonly [source: object, copy: object];

function copied(root: unknown, leaf: Leaf, text: (given: string) => string): unknown {
  const waiting: PendingCopy[] = [];
  const place = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null) return leaf(value);
    const copy = Array.isArray(value) ? [] : {};
    waiting.push([value, copy]);
    return copy;
  };
  const result = place(root);
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [source, copy] = next;
    if (Array.isArray(source) && Array.isArray(copy)) {
      for (const item of source) copy.push(place(item));
      continue;
    }
    const numbers = new Map<string, number>();
    for (const [key, item] of Object.entries(source)) {
      // Defined, not assigned: "__proto__" is treated as any other key.
      const name = unused(copy, text(key), numbers);
      Object.defineProperty(copy, name, {
        value: place(item),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
  }
  return result;
}

/** Keeps both of two keys that are equal once masked. `numbers` is the last number used for each name. */
function unused(target: object, name: string, numbers: Map<string, number>): string {
  if (!Object.hasOwn(target, name)) return name;
  let number = numbers.get(name) ?? 2;
  while (Object.hasOwn(target, `${name} ${number}`)) number++;
  numbers.set(name, number + 1);
  return `${name} ${number}`;
}
