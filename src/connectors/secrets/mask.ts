import { formsOf } from "./forms.ts";

export const REDACTED = "[redacted]";

/** The ends at which a text was cut off before it came here. */
export interface Cuts {
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
  text(text: string, cuts?: Cuts): string;
  /**
   * Removes the secrets from every string of a JSON value, including keys. Returns the same object if there are none.
   * A number whose digits are a secret becomes text.
   */
  json<Value>(value: Value): Value;
}

/**
 * Replaces each secret, in every form of `formsOf`, by "[redacted]". Secrets that overlap or touch become a single
 * "[redacted]", so that no part remains. Each form costs one fast search through a text.
 */
export function createMask(secrets: readonly string[]): Mask {
  const forms = [...new Set(secrets.flatMap(formsOf))].map(form);
  const exact = new Set(secrets);
  const text = (given: string, cuts: Cuts = {}): string => {
    const from = cuts.start ? ended(given, forms) : 0;
    const to = given.length - (cuts.end ? begun(given, forms) : 0);
    return masked(given, forms, from, to);
  };
  const leaf = (value: unknown): unknown => {
    if (typeof value === "string") return text(value);
    return typeof value === "number" && exact.has(String(value)) ? REDACTED : value;
  };
  return {
    text,
    json<Value>(value: Value): Value {
      if (forms.length === 0 || !isTouched(value, leaf)) return value;
      return copied(value, leaf, text) as Value;
    },
  };
}

interface Form {
  readonly text: string;
  /** The part that repeats if the form overlaps with itself: "ab" for "abab", found in "ababab". */
  readonly period: string;
}

/** Finds the smallest period with the failure function of Knuth, Morris and Pratt. */
function form(text: string): Form {
  const borders = [0];
  for (let index = 1, length = 0; index < text.length; index++) {
    while (length > 0 && text[index] !== text[length]) length = borders[length - 1] ?? 0;
    if (text[index] === text[length]) length++;
    borders.push(length);
  }
  return { text, period: text.slice(borders.at(-1)) };
}

type Span = readonly [start: number, end: number];

/** The masked text from `from` to `to`. Secrets are searched for in the whole text. */
function masked(text: string, forms: readonly Form[], from: number, to: number): string {
  const spans = forms.flatMap((each) => spansOf(text, each)).sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  let result = "";
  let shown = from;
  let last = -1;
  for (const [start, end] of spans) {
    if (end <= from || start >= to) continue;
    if (start > last) result += text.slice(shown, Math.max(start, from)) + REDACTED;
    last = Math.max(last, end);
    shown = Math.max(shown, end);
  }
  return shown < to ? result + text.slice(shown, to) : result;
}

/** The number of characters at the end of a text that may begin a form that was cut there. */
function begun(text: string, forms: readonly Form[]): number {
  const last = text.at(-1);
  let most = 0;
  for (const { text: form } of forms) {
    for (let length = Math.min(form.length - 1, text.length); length > most; length--) {
      if (form[length - 1] === last && text.endsWith(form.slice(0, length))) most = length;
    }
  }
  return most;
}

/** The number of characters at the beginning of a text that may end a form that was cut there. */
function ended(text: string, forms: readonly Form[]): number {
  const first = text[0];
  let most = 0;
  for (const { text: form } of forms) {
    for (let length = Math.min(form.length - 1, text.length); length > most; length--) {
      if (form.at(-length) === first && text.startsWith(form.slice(-length))) most = length;
    }
  }
  return most;
}

/**
 * The places of a form. Overlapping ones are merged: text that repeats the form would otherwise be searched again and
 * again.
 */
function spansOf(text: string, { text: form, period }: Form): Span[] {
  const spans: Span[] = [];
  for (let start = text.indexOf(form); start !== -1; ) {
    let end = start + form.length;
    while (text.startsWith(period, end)) end += period.length;
    spans.push([start, end]);
    start = text.indexOf(form, end - form.length + 1);
  }
  return spans;
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
type Pending = readonly [source: object, copy: object];

function copied(root: unknown, leaf: Leaf, text: (given: string) => string): unknown {
  const waiting: Pending[] = [];
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
