import { field } from "../json.ts";

type Members = Record<string, unknown>;

/** Texts that arrive in parts. Any other text replaces an earlier one: some servers repeat a role in each chunk. */
const IN_PARTS: ReadonlySet<string> = new Set([
  "content",
  "reasoning_content",
  "reasoning",
  "refusal",
  "arguments",
]);

/** A chat completion, put together from the chunks of its stream with all their fields, known or not. */
export class MergedCompletion {
  readonly #head: Members = {};
  readonly #choices = new IndexedItems();

  add(chunk: unknown): void {
    if (typeof chunk !== "object" || chunk === null) return;
    Object.assign(this.#head, chunk);
    const choices = field(chunk, "choices");
    if (Array.isArray(choices)) for (const choice of choices) this.#choices.add(choice);
  }

  /** Whether each choice has ended. */
  get isWhole(): boolean {
    const choices = this.#choices.list();
    return choices.length > 0 && choices.every(({ finish_reason: reason }) => typeof reason === "string");
  }

  toJSON(): object {
    const choices = this.#choices.list().map(({ delta, ...choice }) => ({ ...choice, message: delta ?? {} }));
    return { ...this.#head, object: "chat.completion", choices };
  }
}

/** Items of a list that arrive in parts, each with the `index` of its item. */
class IndexedItems {
  readonly #items = new Map<unknown, Members>();

  add(part: unknown): void {
    if (typeof part !== "object" || part === null) return;
    const index = field(part, "index") ?? 0;
    this.#items.set(index, merged(this.#items.get(index) ?? { index }, part as Members));
  }

  list(): readonly Members[] {
    return [...this.#items.values()];
  }

  toJSON(): readonly Members[] {
    return this.list();
  }
}

function merged(before: Members, part: Members): Members {
  for (const [name, value] of Object.entries(part)) before[name] = mergedValue(name, before[name], value);
  return before;
}

function mergedValue(name: string, before: unknown, value: unknown): unknown {
  if (typeof value === "string") {
    return IN_PARTS.has(name) && typeof before === "string" ? before + value : value;
  }
  if (Array.isArray(value)) {
    if (!value.some((item) => field(item, "index") !== undefined)) {
      return Array.isArray(before) ? [...before, ...value] : value;
    }
    const items = before instanceof IndexedItems ? before : new IndexedItems();
    for (const item of value) items.add(item);
    return items;
  }
  if (typeof value === "object" && value !== null) {
    return merged(isMembers(before) ? before : {}, value as Members);
  }
  // A field that is only null has not come yet.
  return value ?? before ?? null;
}

function isMembers(value: unknown): value is Members {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof IndexedItems)
  );
}
