import { Problem } from "../../../base/errors.ts";
import { MAX_MEMBERS } from "../../../base/json-limits.ts";

/** The size of JSON values as they are sent: their bytes, and their members as `MAX_MEMBERS` counts them. */
export interface JsonSize {
  readonly bytes: number;
  readonly members: number;
}

const MOST_BYTES = 10 * 1024 * 1024;
/** Bytes of memory per JSON member of a conversation that is parsed and translated, besides its text. Measured. */
const MEMORY_PER_MEMBER = 170;

export function sizeOf(value: unknown): JsonSize {
  return { bytes: Buffer.byteLength(JSON.stringify(value) ?? ""), members: membersOf(value) };
}

/** The bytes of memory that values of this size take while being sent. */
export function memoryOf({ bytes, members }: JsonSize): number {
  return bytes + members * MEMORY_PER_MEMBER;
}

/** The number of members in a JSON value, which has at most `MAX_NESTING` levels. */
export function membersOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  let count = Math.max(1, members.length);
  for (const member of members) count += membersOf(member);
  return count;
}

/** Adds up the sizes of the parts of a conversation. */
export class ConversationSize implements JsonSize {
  bytes = 0;
  members = 0;
  readonly #mostMembers: number;

  /** @param mostMembers default: the limit for one request */
  constructor(mostMembers = MAX_MEMBERS) {
    this.#mostMembers = mostMembers;
  }

  /** @throws Problem 413 `body_too_large` */
  add({ bytes, members }: JsonSize): void {
    this.bytes += bytes;
    this.members += members;
    if (this.bytes > MOST_BYTES || this.members > this.#mostMembers) throw conversationTooLong();
  }
}

export function conversationTooLong(): Problem {
  return new Problem(
    "body_too_large",
    "The conversation before this request is too long. Send only the relevant part of it as input.",
  );
}
