import { findExcess, MAX_MEMBERS } from "../../base/json-limits.ts";
import { parsedWithoutLoss } from "../json.ts";

/** JavaScriptCore stores such names in sparse arrays, which take four times as long to write. */
const INTEGER_NAME = /^\d/;
const FOR_INTEGER_NAME = 3;

/**
 * The members of all values that are kept from an answer. Each event is small enough to be read, but a stream has
 * thousands of events, and everything kept from them is written at once.
 */
export class MemberLimit {
  #left = MAX_MEMBERS;

  /**
   * @returns whether the value may be kept. After the first value that may not, nothing more is kept, since the
   *   answer is no longer exact
   */
  take(value: unknown): boolean {
    if (typeof value !== "object" || value === null) return this.#takes(1);
    const waiting: object[] = [value];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      // `for in` can stop early: a list of all names may be longer than the remaining limit.
      for (const name in next) {
        if (!this.#takes(!Array.isArray(next) && INTEGER_NAME.test(name) ? 1 + FOR_INTEGER_NAME : 1))
          return false;
        const member: unknown = Reflect.get(next, name);
        if (typeof member === "object" && member !== null) waiting.push(member);
      }
      if (!this.#takes(1)) return false;
    }
    return true;
  }

  /** The value of JSON text; undefined if it cannot be read or may not be kept. */
  parsed(text: string): unknown {
    if (findExcess(text, { members: this.#left }) !== null) return undefined;
    const value = parsedWithoutLoss(text);
    return this.take(value) ? value : undefined;
  }

  #takes(members: number): boolean {
    this.#left = Math.max(0, this.#left - members);
    return this.#left > 0;
  }
}
