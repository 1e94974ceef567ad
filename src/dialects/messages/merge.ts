import { field, parsedOrNothing } from "../json.ts";
import { messageTextBytes } from "./text-bytes.ts";
import { addUsage } from "./usage.ts";

type Members = Record<string, unknown>;

/** The parts of a block that arrive in pieces, by the type of the delta that brings them. */
const IN_PARTS: ReadonlyMap<unknown, string> = new Map([
  ["text_delta", "text"],
  ["thinking_delta", "thinking"],
  ["input_json_delta", "partial_json"],
]);

/** The most blocks that are put together. */
const MOST_BLOCKS = 1_024;

/** A message, put together from the events of its stream with all their fields, known or not. */
export class MergedMessage {
  #message: Members = {};
  #blocks = new Map<unknown, MergedBlock>();
  #isWhole = false;
  #isExact = true;

  /** False if an event had something else for the client to read: the events themselves are then the evidence. */
  get isExact(): boolean {
    return this.#isExact;
  }

  /** Whether its last event has come. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  add(event: unknown): void {
    if (!isMembers(event)) {
      this.#isExact = false;
      return;
    }
    const { type, index } = event;
    if (type === "message_start") {
      if (this.#blocks.size > 0) this.#isExact = false;
      this.#message = membersOf(event.message);
      this.#blocks = new Map();
    } else if (type === "content_block_start") {
      if (this.#blocks.has(index) || this.#blocks.size >= MOST_BLOCKS) this.#isExact = false;
      else this.#blocks.set(index, new MergedBlock(membersOf(event.content_block)));
    } else if (type === "content_block_delta") {
      if (!this.#blocks.get(index)?.add(membersOf(event.delta))) this.#isExact = false;
    } else if (type === "message_delta") {
      const { type: _, delta, usage, ...rest } = event;
      if (!isMembers(this.#message.usage)) this.#message.usage = {};
      addUsage(membersOf(this.#message.usage), usage);
      Object.assign(this.#message, rest, membersOf(delta));
    } else if (type === "message_stop") this.#isWhole = true;
  }

  /** Bytes of the texts in it. */
  get textBytes(): number {
    return messageTextBytes(this.#content());
  }

  toJSON(): object {
    return { ...this.#message, content: this.#content() };
  }

  #content(): object[] {
    return [...this.#blocks.values()].map((block) => block.value());
  }
}

/** A block of a message's content. */
class MergedBlock {
  readonly #block: Members;
  #input = "";

  constructor(block: Members) {
    this.#block = block;
  }

  /** @returns whether the delta is of a kind that is known */
  add(delta: Members): boolean {
    const { type } = delta;
    const name = IN_PARTS.get(type);
    const block = this.#block;
    if (name !== undefined) {
      const part = field(delta, name);
      if (typeof part !== "string") return false;
      if (name === "partial_json") this.#input += part;
      else block[name] = (typeof block[name] === "string" ? block[name] : "") + part;
    } else if (type === "citations_delta") {
      if (Array.isArray(block.citations)) block.citations.push(delta.citation);
      else block.citations = [delta.citation];
    } else if (type === "signature_delta") block.signature = delta.signature;
    else return false;
    return true;
  }

  value(): object {
    if (this.#input === "") return this.#block;
    // What is not JSON, because the model wrote it wrong or was cut short, is kept as text.
    return { ...this.#block, input: parsedOrNothing(this.#input) ?? this.#input };
  }
}

function membersOf(value: unknown): Members {
  return isMembers(value) ? value : {};
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
