import type { MemberLimit } from "./member-limit.ts";

/** The maximum number of members that are merged. */
const MOST_MEMBERS = 128;

/**
 * Members of an object whose values arrive in several events. No value replaces the text of another: a client may
 * already have shown it.
 */
export class MergedMembers {
  readonly #members = new Map<string, unknown>();
  readonly #kept: MemberLimit;
  readonly #counters: ReadonlySet<string> | "all";
  /** The JSON of values that were compared with later ones, so that each is converted only once. */
  readonly #texts = new Map<string, string>();

  /** @param counters the members whose numbers may change from one event to the next, such as counts of tokens */
  constructor(kept: MemberLimit, counters: ReadonlySet<string> | "all" = new Set()) {
    this.#kept = kept;
    this.#counters = counters;
  }

  get size(): number {
    return this.#members.size;
  }

  /** @returns false if the value is not kept, because it would replace other text or there are too many members */
  add(name: string, value: unknown): boolean {
    const before = this.#members.get(name);
    if (!isEmpty(before)) return isEmpty(value) || this.#replace(name, before, value);
    const isNew = !this.#members.has(name);
    if (isNew && (this.#members.size >= MOST_MEMBERS || !this.#kept.take(null))) return false;
    if (!isEmpty(value) && !this.#kept.take(value)) return false;
    this.#members.set(name, value);
    return true;
  }

  /** @returns whether all values are kept */
  addAll(members: object): boolean {
    let areKept = true;
    for (const [name, value] of Object.entries(members)) if (!this.add(name, value)) areKept = false;
    return areKept;
  }

  toJSON(): Record<string, unknown> {
    return Object.fromEntries(this.#members);
  }

  #replace(name: string, before: unknown, value: unknown): boolean {
    if (before === value) return true;
    if (typeof before === "string" || typeof value === "string") return false;
    const isCounter = this.#counters === "all" || this.#counters.has(name);
    const textsOf = isCounter ? withoutNumbers : JSON.stringify;
    const texts = this.#texts.get(name) ?? textsOf(before);
    this.#texts.set(name, texts);
    if (texts !== textsOf(value)) return false;
    this.#members.set(name, value);
    return true;
  }
}

/**
 * Whether a value has nothing that a client shows. Numbers and booleans are never empty: clients print them like
 * text.
 */
export function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === "") return true;
  if (typeof value !== "object") return false;
  for (const _ in value) return false;
  return true;
}

/** The JSON of a value without its numbers. */
function withoutNumbers(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === "number" ? 0 : part));
}
