/** Members that no client shows. Some of them change from one event to the next. */
const NOT_SHOWN: ReadonlySet<string> = new Set([
  ...["type", "object", "status", "role", "service_tier", "obfuscation"],
  ...["id", "item_id", "response_id", "call_id", "encrypted_content"],
]);

/** The most texts that are looked for at the end. */
const MOST_TEXTS = 50_000;

/**
 * The texts that the events of a response have brought. Most come three times: in deltas, when their part is done, and
 * in the last event. A provider decides whether these are the same.
 */
export class SentTexts {
  readonly #texts = new Set<string>();
  /** Texts that come in parts, by their place. */
  readonly #parts = new Map<string, string>();

  add(event: object): void {
    if (this.#texts.size + this.#parts.size > MOST_TEXTS) return;
    const { type, delta, ...members }: Record<string, unknown> = { ...event };
    if (typeof delta !== "string") addTexts(event, this.#texts, NOT_SHOWN);
    else {
      const { output_index, content_index, summary_index } = members;
      const place = JSON.stringify([type, output_index, content_index, summary_index]);
      this.#parts.set(place, (this.#parts.get(place) ?? "") + delta);
      addTexts(members, this.#texts, NOT_SHOWN);
    }
  }

  /** Whether a value contains all of them. False also if they are too many. */
  areIn(value: unknown): boolean {
    if (this.#texts.size + this.#parts.size > MOST_TEXTS) return false;
    const kept = new Set<string>();
    addTexts(value, kept);
    const sent = [...this.#texts, ...this.#parts.values()];
    return sent.every((text) => text === "" || kept.has(text));
  }
}

function addTexts(root: unknown, texts: Set<string>, except?: ReadonlySet<string>): void {
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
