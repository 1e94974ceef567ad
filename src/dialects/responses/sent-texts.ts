import type { Members } from "../json.ts";

/** Members that no client shows. Some of them change from one event to the next. */
const NOT_SHOWN: ReadonlySet<string> = new Set([
  ...["type", "object", "status", "role", "service_tier", "obfuscation"],
  ...["id", "item_id", "response_id", "call_id", "encrypted_content"],
]);

/** The maximum number of texts that are looked for at the end. */
const MOST_TEXTS = 50_000;

/**
 * The texts that a response's events delivered. Most arrive three times: in deltas, when their part is done, and in
 * the last event. A provider may send different ones each time.
 */
export class SentTexts {
  readonly #texts = new Set<string>();
  /** Texts that arrive in pieces, by their place. */
  readonly #parts = new Map<string, string>();

  add(event: Members): void {
    if (this.#texts.size + this.#parts.size > MOST_TEXTS) return;
    for (const name in event) {
      const value = event[name];
      if (name === "delta" && typeof value === "string") this.#addPart(event, value);
      else if (!NOT_SHOWN.has(name)) addTexts(value, this.#texts, NOT_SHOWN);
    }
  }

  #addPart(event: Members, delta: string): void {
    const { type, output_index, content_index, summary_index } = event;
    const place = [type, output_index, content_index, summary_index].map(placeName).join(" ");
    this.#parts.set(place, (this.#parts.get(place) ?? "") + delta);
  }

  /** Whether a value contains all of these texts. Also false if there are too many. */
  areIn(value: unknown): boolean {
    if (this.#texts.size + this.#parts.size > MOST_TEXTS) return false;
    const kept = new Set<string>();
    addTexts(value, kept);
    const sent = [...this.#texts, ...this.#parts.values()];
    return sent.every((text) => text === "" || kept.has(text));
  }
}

/** A value as text unless it is an object: a provider's object may have its own `toString`. */
function placeName(value: unknown): string {
  return typeof value === "object" ? "" : String(value);
}

function addTexts(root: unknown, texts: Set<string>, except?: ReadonlySet<string>): void {
  if (typeof root === "string") texts.add(root);
  if (typeof root !== "object" || root === null) return;
  const waiting: unknown[] = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string") texts.add(value);
    else if (Array.isArray(value)) for (const item of value) waiting.push(item);
    else if (typeof value === "object" && value !== null) {
      for (const [name, member] of Object.entries(value)) if (!except?.has(name)) waiting.push(member);
    }
  }
}
