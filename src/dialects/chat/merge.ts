import { field } from "../json.ts";

/** The most choices, and tool calls of a choice, that are put together. */
const MOST_ITEMS = 128;
/** The texts of a delta that arrive in parts. */
const TEXTS = ["content", "reasoning_content", "reasoning", "refusal"] as const;
const DELTA_FIELDS: ReadonlySet<string> = new Set([...TEXTS, "role", "tool_calls"]);

interface ToolCall {
  readonly index: number;
  id: string | undefined;
  name: string;
  arguments: string;
}

interface Choice {
  readonly index: number;
  readonly texts: Map<string, string>;
  readonly toolCalls: Map<number, ToolCall>;
  finishReason: string | null;
}

/**
 * A chat completion, put together from the chunks of its stream: all that a client shows. A provider decides what
 * stands in a chunk, so only fields of a known kind are taken; `isExact` says whether that was everything.
 */
export class MergedCompletion {
  readonly #choices = new Map<number, Choice>();
  #head: { readonly id?: string; readonly model?: string } = {};
  #usage: object | null = null;
  #isExact = true;

  /** False if a chunk had something else for the client to read: the chunks themselves are then the evidence. */
  get isExact(): boolean {
    return this.#isExact;
  }

  /** Whether each choice has ended. */
  get isWhole(): boolean {
    const choices = [...this.#choices.values()];
    return choices.length > 0 && choices.every(({ finishReason }) => finishReason !== null);
  }

  /** Bytes of the texts that the model has written. */
  get textBytes(): number {
    let bytes = 0;
    for (const { texts, toolCalls } of this.#choices.values()) {
      for (const text of texts.values()) bytes += Buffer.byteLength(text);
      for (const { name, arguments: input } of toolCalls.values()) bytes += Buffer.byteLength(name + input);
    }
    return bytes;
  }

  /** @param chunk undefined if it could not be read */
  add(chunk: unknown): void {
    const choices = field(chunk, "choices") ?? [];
    if (typeof chunk !== "object" || chunk === null || !Array.isArray(choices)) {
      this.#isExact = false;
      return;
    }
    const [id, model, usage] = ["id", "model", "usage"].map((name) => field(chunk, name));
    if (typeof id === "string" && typeof model === "string") this.#head = { id, model };
    if (typeof usage === "object" && usage !== null) this.#usage = usage;
    for (const part of choices) this.#addChoice(part);
  }

  toJSON(): object {
    const choices = [...this.#choices.values()].map(({ index, texts, toolCalls, finishReason }) => ({
      index,
      message: {
        role: "assistant",
        ...Object.fromEntries(texts),
        ...(toolCalls.size === 0 ? {} : { tool_calls: [...toolCalls.values()].map(viewToolCall) }),
      },
      finish_reason: finishReason,
    }));
    return {
      ...this.#head,
      object: "chat.completion",
      choices,
      ...(this.#usage === null ? {} : { usage: this.#usage }),
    };
  }

  #addChoice(part: unknown): void {
    const choice = itemOf(this.#choices, field(part, "index"), (index) => ({
      ...{ index, texts: new Map(), toolCalls: new Map(), finishReason: null },
    }));
    const delta = field(part, "delta") ?? {};
    if (!choice || typeof delta !== "object") {
      this.#isExact = false;
      return;
    }
    const reason = field(part, "finish_reason");
    if (typeof reason === "string") choice.finishReason = reason;
    for (const [name, value] of Object.entries(delta)) {
      if (value === null || (DELTA_FIELDS.has(name) && this.#addField(choice, name, value))) continue;
      this.#isExact = false;
    }
  }

  /** @returns whether it is of the kind that its name promises */
  #addField(choice: Choice, name: string, value: unknown): boolean {
    if (name === "tool_calls") {
      return Array.isArray(value) && value.every((part) => addToolCall(choice, part));
    }
    if (typeof value !== "string") return false;
    if (name !== "role") choice.texts.set(name, (choice.texts.get(name) ?? "") + value);
    return true;
  }
}

/** @returns whether it is a part of a tool call */
function addToolCall({ toolCalls }: Choice, part: unknown): boolean {
  const call = itemOf(toolCalls, field(part, "index"), (index) => ({
    ...{ index, id: undefined, name: "", arguments: "" },
  }));
  const called = field(part, "function") ?? {};
  const [id, name, input] = [field(part, "id"), field(called, "name"), field(called, "arguments")];
  if (!call || ![id, name, input].every((value) => value == null || typeof value === "string")) return false;
  if (typeof id === "string") call.id = id;
  if (typeof name === "string") call.name += name;
  if (typeof input === "string") call.arguments += input;
  return true;
}

function viewToolCall({ id, name, arguments: input }: ToolCall): object {
  return { id, type: "function", function: { name, arguments: input } };
}

/** The item with this index, made if it is new. Undefined if there is no such index, or too many items. */
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
