import { DocumentTooLarge } from "../fault.ts";

/** A schema exceeded its own limit. Never leaves this folder. */
export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

/** Maximum work to read a document, in characters written and fields read, whether they are used or not. */
const MAX_WORK = 80_000_000;

/**
 * Counts the work of all schemas of a document together, so that a thousand schemas cannot each use the limit of one.
 */
export class SchemaWork {
  #left = MAX_WORK;

  /** @throws DocumentTooLarge */
  spend(amount: number): void {
    this.#left -= amount;
    if (this.#left < 0) throw new DocumentTooLarge("the targets of its references are too large in total");
  }
}

/** Counts the work of one schema. */
export class Budget {
  readonly #work: SchemaWork;
  #left: number;

  constructor(characters: number, work: SchemaWork) {
    this.#left = characters;
    this.#work = work;
  }

  /** @throws TooLarge, DocumentTooLarge */
  spend(amount: number): void {
    this.#work.spend(amount);
    this.#left -= amount;
    if (this.#left < 0) throw new TooLarge();
  }

  /** Spends the size of a value as JSON; stops counting at the limit. @throws TooLarge, DocumentTooLarge */
  spendValue(value: unknown): void {
    const waiting: unknown[] = [value];
    while (waiting.length > 0) {
      const next = waiting.pop();
      if (typeof next === "string") this.spend(next.length + 3);
      else if (typeof next !== "object" || next === null) this.spend(6);
      else this.#spendContainer(next, waiting);
    }
  }

  #spendContainer(container: object, waiting: unknown[]): void {
    if (Array.isArray(container)) {
      this.spend(2 + container.length * 4);
      for (const item of container) waiting.push(item);
      return;
    }
    const keys = Object.keys(container);
    this.spend(2 + keys.length * 4);
    for (const key of keys) this.spend(key.length);
    for (const item of Object.values(container)) waiting.push(item);
  }
}
