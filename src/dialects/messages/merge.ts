import { isMembers, isTextOrNothing, type Members, textBytesOf } from "../json.ts";
import { MemberLimit } from "../pass/member-limit.ts";
import { isEmpty, MergedMembers } from "../pass/merged-members.ts";
import { messageTextBytes } from "./text-bytes.ts";

/** The members of a block that arrive in pieces, by the type of the delta that carries them. */
const IN_PARTS: ReadonlyMap<unknown, string> = new Map([
  ["text_delta", "text"],
  ["thinking_delta", "thinking"],
  ["input_json_delta", "partial_json"],
]);

/** The members of a delta that are pieces of text. */
export const DELTA_TEXTS: readonly string[] = [...IN_PARTS.values()];

/** The maximum number of blocks that are merged. */
const MOST_BLOCKS = 1_024;

/** A message, merged from the events of its stream with all their fields, known or unknown. */
export class MergedMessage {
  readonly #kept = new MemberLimit();
  readonly #members = new MergedMembers(this.#kept);
  readonly #usage = new MergedMembers(this.#kept, "all");
  readonly #blocks = new Map<unknown, MergedBlock>();
  /** Size in bytes of the text that could not be merged. */
  #otherBytes = 0;
  #hasBegun = false;
  #isWhole = false;
  #isExact = true;

  /**
   * False if an event contained anything else that a client may read: the events themselves are then the evidence.
   */
  get isExact(): boolean {
    return this.#isExact;
  }

  /** Whether its last event has arrived. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  add(event: unknown): void {
    if (!isMembers(event)) {
      this.#leaveOut(event);
      return;
    }
    const { type, ...members } = event;
    if (type === "message_start") this.#begin(members);
    else if (type === "content_block_start") this.#beginBlock(members);
    else if (type === "content_block_delta") this.#addDelta(members);
    else if (type === "message_delta") {
      const { delta, ...rest } = members;
      this.#addMembers(rest);
      this.#addMembers(membersOf(delta));
      if (!isMembers(delta)) this.#leaveOut(delta);
    } else if (type === "message_stop") {
      this.#isWhole = true;
      this.#leaveOutAll(members);
    } else if (type === "content_block_stop") {
      const { index, ...rest } = members;
      this.#leaveOutAll(this.#blocks.has(index) ? rest : members);
    } else if (type === "ping") this.#leaveOutAll(members);
    else this.#leaveOut(members);
  }

  /** Adds data that cannot be read. A client may be able to read more than this class does, such as deeper JSON. */
  addUnread(data: string): void {
    this.#isExact = false;
    this.#otherBytes += Buffer.byteLength(data);
  }

  /** Size in bytes of its text. */
  get textBytes(): number {
    return messageTextBytes(this.#content()) + this.#otherBytes;
  }

  toJSON(): object {
    const usage = this.#usage.size === 0 ? {} : { usage: this.#usage.toJSON() };
    return { ...this.#members.toJSON(), ...usage, content: this.#content() };
  }

  #begin({ message, ...rest }: Members): void {
    if (this.#hasBegun || !isMembers(message)) this.#isExact = false;
    this.#hasBegun = true;
    this.#addMembers(membersOf(message));
    this.#leaveOutAll(rest);
  }

  #beginBlock({ index, content_block: block, ...rest }: Members): void {
    // Clients append a new block regardless of its index.
    const isNext = index === this.#blocks.size && index < MOST_BLOCKS;
    if (!isNext || !isMembers(block) || !this.#kept.take(block)) this.#leaveOut(block);
    else this.#blocks.set(index, new MergedBlock(block, this.#kept));
    this.#leaveOutAll(rest);
  }

  #addDelta({ index, delta, ...rest }: Members): void {
    if (!this.#blocks.get(index)?.add(membersOf(delta))) this.#leaveOut({ ...membersOf(delta), type: null });
    this.#leaveOutAll(rest);
  }

  #addMembers({ content, usage, ...members }: Members): void {
    this.#leaveOutAll({ content });
    const isKept = usage === undefined || usage === null || (isMembers(usage) && this.#usage.addAll(usage));
    if (!this.#members.addAll(members) || !isKept) this.#isExact = false;
  }

  #leaveOutAll(members: Members): void {
    for (const value of Object.values(members)) if (!isEmpty(value)) this.#leaveOut(value);
  }

  #leaveOut(value: unknown): void {
    this.#isExact = false;
    this.#otherBytes += textBytesOf(value);
  }

  #content(): object[] {
    return [...this.#blocks.values()].map((block) => block.value());
  }
}

/** A block of a message's content. */
class MergedBlock {
  readonly #block: Members;
  readonly #kept: MemberLimit;
  #input = "";
  /** The value of the input, once read, and the text that it was read from. */
  #parsed: { readonly text: string; readonly value: unknown } = { text: "", value: undefined };

  constructor(block: Members, kept: MemberLimit) {
    this.#block = block;
    this.#kept = kept;
  }

  /** @returns whether the whole delta is known and kept */
  add({ type, ...delta }: Members): boolean {
    const name = IN_PARTS.get(type);
    const block = this.#block;
    if (name !== undefined) {
      const { [name]: part, ...rest } = delta;
      const target = name === "partial_json" ? "input" : name;
      const before = block[target];
      if (typeof part !== "string") return false;
      if (name === "partial_json") this.#input += part;
      else block[target] = (typeof before === "string" ? before : "") + part;
      // Clients append to the value that the block began with: `1` becomes "1 and more".
      const wasKept = target === name ? isTextOrNothing(before) : isEmpty(before);
      return wasKept && Object.entries(rest).every(isEmptyOrCounter);
    }
    if (type === "citations_delta") {
      const { citation, ...rest } = delta;
      if (!this.#kept.take(citation)) return false;
      if (Array.isArray(block.citations)) block.citations.push(citation);
      else if (isEmpty(block.citations)) block.citations = [citation];
      else return false;
      return Object.values(rest).every(isEmpty);
    }
    if (type !== "signature_delta") return false;
    const { signature, ...rest } = delta;
    if (!isEmpty(block.signature) && block.signature !== signature) return false;
    if (block.signature !== signature && !this.#kept.take(signature)) return false;
    block.signature = signature;
    return Object.values(rest).every(isEmpty);
  }

  value(): object {
    if (this.#input === "") return this.#block;
    if (this.#parsed.text !== this.#input) {
      this.#parsed = { text: this.#input, value: this.#kept.parsed(this.#input) };
    }
    // Input that is not JSON, because the model made a mistake or was cut off, is kept as text. So is input with too
    // many members.
    return { ...this.#block, input: this.#parsed.value ?? this.#input };
  }
}

/** Hidden thinking is reported as a number of tokens in each delta. */
function isEmptyOrCounter([name, value]: [name: string, value: unknown]): boolean {
  return isEmpty(value) || (name === "estimated_tokens" && typeof value === "number");
}

function membersOf(value: unknown): Members {
  return isMembers(value) ? value : {};
}
