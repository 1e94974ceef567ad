import { field, textBytesOf } from "../json.ts";
import { MemberLimit } from "../pass/member-limit.ts";
import { isEmpty, MergedMembers } from "../pass/merged-members.ts";

/** The maximum number of choices, and of tool calls per choice, that are merged. */
const MOST_ITEMS = 128;
/** The text members of a delta, which arrive in pieces. */
export const DELTA_TEXTS = ["content", "reasoning_content", "reasoning", "refusal"] as const;
const DELTA_FIELDS: ReadonlySet<string> = new Set([...DELTA_TEXTS, "role", "tool_calls"]);
/** For each kind of tool call, the names of its text members, which arrive in pieces. */
const CALLED: ReadonlyMap<string, readonly string[]> = new Map([
  ["function", ["name", "arguments"]],
  ["custom", ["name", "input"]],
]);
/** Members of a chunk and of a choice whose numbers change during a stream. */
const COUNTERS: ReadonlySet<string> = new Set(["created", "timings", "content_filter_offsets"]);
const OBJECTS: ReadonlySet<unknown> = new Set(["", "chat.completion.chunk", "chat.completion"]);

type Texts = Map<string, string>;

interface ToolCall {
  /** All members except its index and its text members. */
  readonly members: MergedMembers;
  readonly called: Map<string, Texts>;
}

interface Choice {
  readonly index: number;
  readonly texts: Texts;
  readonly toolCalls: Map<number, ToolCall>;
  /** Unknown members. */
  readonly members: MergedMembers;
  finishReason: string | null;
}

/**
 * A chat completion, merged from the chunks of its stream: everything that a client shows. The provider decides what
 * a chunk contains, so only what can be merged without loss is merged. `isExact` reports whether that was everything.
 */
export class MergedCompletion {
  readonly #answers: number;
  readonly #choices = new Map<number, Choice>();
  readonly #kept = new MemberLimit();
  readonly #head = new MergedMembers(this.#kept, COUNTERS);
  readonly #usage = new MergedMembers(this.#kept, "all");
  /** Size in bytes of the text that could not be merged. */
  #otherBytes = 0;
  #isExact = true;

  /** @param answers how many answers the client requested */
  constructor(answers = 1) {
    this.#answers = answers;
  }

  /** False if a chunk contained anything else that a client may read: the chunks themselves are then the evidence. */
  get isExact(): boolean {
    return this.#isExact;
  }

  /** Whether each choice has ended. */
  get isWhole(): boolean {
    const choices = [...this.#choices.values()];
    return choices.length >= this.#answers && choices.every(({ finishReason }) => finishReason !== null);
  }

  /** Size in bytes of the text that the model has written. */
  get textBytes(): number {
    let bytes = this.#otherBytes;
    for (const { texts, toolCalls } of this.#choices.values()) {
      const calls = [...toolCalls.values()].flatMap(({ called }) => [...called.values()]);
      for (const all of [texts, ...calls]) for (const text of all.values()) bytes += Buffer.byteLength(text);
    }
    return bytes;
  }

  add(chunk: unknown): void {
    const choices = field(chunk, "choices") ?? [];
    if (typeof chunk !== "object" || chunk === null || Array.isArray(chunk) || !Array.isArray(choices)) {
      this.#leaveOut(chunk);
      return;
    }
    // `Object.entries` would take half of the time of a merge.
    for (const name in chunk) {
      const value: unknown = Reflect.get(chunk, name);
      // OpenAI's padding, of random length.
      if (name === "choices" || name === "obfuscation") continue;
      if (name === "usage") this.#addUsage(value);
      else if (name === "object" ? !OBJECTS.has(value) : !this.#head.add(name, value)) this.#isExact = false;
    }
    for (const part of choices) this.#addChoice(part);
  }

  /** Adds data that cannot be read. A client may be able to read more than this class does, such as deeper JSON. */
  addUnread(data: string): void {
    this.#isExact = false;
    this.#otherBytes += Buffer.byteLength(data);
  }

  toJSON(): object {
    const choices = [...this.#choices.values()].map(({ index, texts, toolCalls, members, finishReason }) => ({
      ...members.toJSON(),
      index,
      message: {
        role: "assistant",
        ...Object.fromEntries(texts),
        ...(toolCalls.size === 0 ? {} : { tool_calls: [...toolCalls.values()].map(viewToolCall) }),
      },
      finish_reason: finishReason,
    }));
    return {
      ...this.#head.toJSON(),
      object: "chat.completion",
      choices,
      ...(this.#usage.size === 0 ? {} : { usage: this.#usage.toJSON() }),
    };
  }

  #addUsage(usage: unknown): void {
    if (usage === null) return;
    if (typeof usage !== "object" || !this.#usage.addAll(usage)) this.#isExact = false;
  }

  #addChoice(part: unknown): void {
    const delta = field(part, "delta") ?? {};
    const make = (index: number) => newChoice(index, this.#kept);
    const choice = typeof part === "object" ? itemOf(this.#choices, field(part, "index"), make) : null;
    if (!choice || typeof part !== "object" || part === null || typeof delta !== "object") {
      this.#leaveOut(part);
      return;
    }
    for (const name in part) {
      const value: unknown = Reflect.get(part, name);
      if (name === "index" || name === "delta") continue;
      if (name === "finish_reason") this.#finish(choice, value);
      else if (name === "message" || !choice.members.add(name, value)) this.#leaveOut(value);
    }
    for (const name in delta) {
      const value: unknown = Reflect.get(delta, name);
      if (value === null || (DELTA_FIELDS.has(name) && this.#addField(choice, name, value))) continue;
      this.#leaveOut(value);
    }
  }

  #finish(choice: Choice, reason: unknown): void {
    if (isEmpty(reason)) return;
    if (typeof reason !== "string" || (choice.finishReason ?? reason) !== reason) this.#isExact = false;
    else choice.finishReason = reason;
  }

  /** @returns whether it has the type that its name implies */
  #addField(choice: Choice, name: string, value: unknown): boolean {
    if (name === "tool_calls") {
      if (!Array.isArray(value)) return false;
      for (const part of value) if (!addToolCall(choice, part, this.#kept)) this.#leaveOut(part);
      return true;
    }
    if (typeof value !== "string") return false;
    if (name === "role") return value === "" || value === "assistant";
    choice.texts.set(name, (choice.texts.get(name) ?? "") + value);
    return true;
  }

  #leaveOut(value: unknown): void {
    this.#isExact = false;
    this.#otherBytes += textBytesOf(value);
  }
}

function newChoice(index: number, kept: MemberLimit): Choice {
  const members = new MergedMembers(kept, COUNTERS);
  return { index, texts: new Map(), toolCalls: new Map(), members, finishReason: null };
}

/** @returns whether it is part of a tool call and was kept completely */
function addToolCall({ toolCalls }: Choice, part: unknown, kept: MemberLimit): boolean {
  if (typeof part !== "object" || part === null) return false;
  const call = itemOf(toolCalls, field(part, "index"), () => ({
    ...{ members: new MergedMembers(kept), called: new Map() },
  }));
  if (!call) return false;
  let isKept = true;
  for (const [name, value] of Object.entries(part)) {
    if (name === "index" || value === null) continue;
    const texts = CALLED.get(name);
    if (!(texts ? addTexts(call, name, texts, value) : call.members.add(name, value))) isKept = false;
  }
  return isKept;
}

/**
 * Adds to the text members of a tool call's function or custom tool.
 * @returns whether it contains nothing else
 */
function addTexts({ called }: ToolCall, kind: string, names: readonly string[], parts: unknown): boolean {
  if (typeof parts !== "object" || parts === null) return false;
  const texts: Texts = called.get(kind) ?? new Map(names.map((name) => [name, ""]));
  called.set(kind, texts);
  let isKept = true;
  for (const [name, value] of Object.entries(parts)) {
    const before = texts.get(name);
    if (value === null) continue;
    if (before === undefined || typeof value !== "string") isKept = false;
    else texts.set(name, before + value);
  }
  return isKept;
}

function viewToolCall({ members, called }: ToolCall): object {
  const kinds = [...called].map(([kind, texts]) => [kind, Object.fromEntries(texts)]);
  return {
    type: called.has("custom") ? "custom" : "function",
    ...members.toJSON(),
    ...Object.fromEntries(kinds),
  };
}

/** The item with this index, created if it is new. Undefined if the index is invalid or there are too many items. */
function itemOf<Item>(
  items: Map<number, Item>,
  index: unknown,
  make: (index: number) => Item,
): Item | undefined {
  const at = index ?? 0;
  if (typeof at !== "number") return undefined;
  const known = items.get(at);
  if (known || items.size >= MOST_ITEMS) return known;
  const made = make(at);
  items.set(at, made);
  return made;
}
