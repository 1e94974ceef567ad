import type { Members } from "../json.ts";

/** Members that no client shows. Some of them change from one event to the next. */
const NOT_SHOWN: ReadonlySet<string> = new Set([
  ...["type", "object", "status", "role", "service_tier", "obfuscation"],
  ...["id", "item_id", "response_id", "call_id", "encrypted_content"],
]);
/** Members with numbers that only count something. */
const COUNTERS: ReadonlySet<string> = new Set([
  ...["sequence_number", "output_index", "content_index", "summary_index", "annotation_index"],
  ...["partial_image_index", "logprob"],
]);

/** The maximum number of strings that are searched for at the end. */
const MOST_TEXTS = 50_000;

/**
 * The strings that a response's events delivered, and their numbers and booleans, which clients print like text. Most
 * arrive three times: in deltas, when their part is done, and in the last event. A provider may send a different
 * string each time.
 */
export class SentTexts {
  readonly #texts = new Set<string>();
  /** Texts that arrive in pieces, by position. */
  readonly #parts = new Map<string, string>();

  add(event: Members): void {
    if (this.#texts.size + this.#parts.size > MOST_TEXTS) return;
    const { delta, ...members } = event;
    this.addDelta(event);
    addTexts(typeof delta === "string" ? members : event, this.#texts, true);
  }

  /** Adds only an event's delta. Its other strings MUST have been added with an earlier event. */
  addDelta({ delta, type, output_index, content_index, summary_index }: Members): void {
    if (typeof delta !== "string") return;
    const place = [type, output_index, content_index, summary_index].map(placeName).join(" ");
    this.#parts.set(place, (this.#parts.get(place) ?? "") + delta);
  }

  /** Whether a value contains all of these strings. Also false if there are too many. */
  areIn(value: unknown): boolean {
    if (this.#texts.size + this.#parts.size > MOST_TEXTS) return false;
    const kept = new Set<string>();
    addTexts(value, kept, false);
    const sent = [...this.#texts, ...this.#parts.values()];
    return sent.every((text) => text === "" || kept.has(text));
  }
}

/** A value as text unless it is an object: a provider's object may have its own `toString`. */
function placeName(value: unknown): string {
  return typeof value === "object" ? "" : String(value);
}

/**
 * Adds the text in a value, and its numbers and booleans as `name: 1`: a bare `true` occurs in every response.
 * @param isShown whether to leave out what no client shows
 */
function addTexts(root: unknown, texts: Set<string>, isShown: boolean): void {
  if (typeof root !== "object" || root === null) return;
  const waiting: object[] = [root];
  for (let value = waiting.pop(); value; value = waiting.pop()) {
    for (const name in value) {
      const member: unknown = Reflect.get(value, name);
      if (isShown && (NOT_SHOWN.has(name) || (typeof member === "number" && COUNTERS.has(name)))) continue;
      if (typeof member === "string") texts.add(member);
      else if (typeof member === "object" && member !== null) waiting.push(member);
      else if (member !== null) texts.add(`${name}: ${String(member)}`);
    }
  }
}
