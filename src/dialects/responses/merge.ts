import { field, isMembers, isTextOrNothing, type Members } from "../json.ts";
import { MemberLimit } from "../pass/member-limit.ts";
import { responseTextBytes } from "./text-bytes.ts";

/** The maximum number of items in an output, and of parts in an item, that are merged. */
const MOST_ITEMS = 1_024;

/** Where a delta's text belongs: in a member of the item, of an object in it, or of one of the item's parts. */
interface DeltaPlace {
  readonly member: string;
  readonly object?: string;
  readonly parts?: { readonly list: string; readonly index: string; readonly type: string };
}

const CONTENT = { list: "content", index: "content_index" };
const DELTAS: ReadonlyMap<unknown, DeltaPlace> = new Map<string, DeltaPlace>([
  ["response.output_text.delta", { member: "text", parts: { ...CONTENT, type: "output_text" } }],
  ["response.refusal.delta", { member: "refusal", parts: { ...CONTENT, type: "refusal" } }],
  ["response.reasoning_text.delta", { member: "text", parts: { ...CONTENT, type: "reasoning_text" } }],
  [
    "response.reasoning_summary_text.delta",
    { member: "text", parts: { list: "summary", index: "summary_index", type: "summary_text" } },
  ],
  ["response.function_call_arguments.delta", { member: "arguments" }],
  ["response.mcp_call_arguments.delta", { member: "arguments" }],
  ["response.custom_tool_call_input.delta", { member: "input" }],
  ["response.code_interpreter_call_code.delta", { member: "code" }],
  ["response.apply_patch_call_operation_diff.delta", { object: "operation", member: "diff" }],
]);

/** Members of an event, or of a part in it, that clients print as text. */
const TEXTS: readonly string[] = ["delta", ...new Set([...DELTAS.values()].map(({ member }) => member))];

/**
 * A response, merged from the events of a stream that did not reach its end. `SentTexts` finds the text that it
 * lacks.
 */
export class MergedResponse {
  #response: Members = {};
  readonly #kept = new MemberLimit();
  readonly #items = new Map<number, Members>();
  #sequence = -1;
  #isKnown = true;

  /**
   * False if an event could not be read or kept, was a delta of an unknown kind, or had another value where a string
   * belongs.
   */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The highest `sequence_number`; -1 if there was none. */
  get sequence(): number {
    return this.#sequence;
  }

  get output(): readonly object[] {
    return [...this.#items.entries()].sort(([first], [second]) => first - second).map(([, item]) => item);
  }

  /** Size in bytes of the text that the model wrote. */
  get textBytes(): number {
    return responseTextBytes(this.output);
  }

  /** @param event undefined if it could not be read */
  add(event: unknown): void {
    if (!isMembers(event)) {
      this.#isKnown = false;
      return;
    }
    const { type, sequence_number: sequence } = event;
    if (typeof sequence === "number") this.#sequence = Math.max(this.#sequence, sequence);
    if (!hasTexts(event) || !hasTexts(event.part)) this.#isKnown = false;
    if (isMembers(event.response)) this.#response = event.response;
    const place = DELTAS.get(type);
    if (place) this.#addDelta(event, place);
    else if (type === "response.output_item.added" || type === "response.output_item.done")
      this.#setItem(event);
    else if (typeof type === "string" && type.endsWith(".delta")) this.#isKnown = false;
  }

  /** Adds an event that differs from an earlier one only in its delta and its number. */
  addAlike(event: Members): void {
    const { type, sequence_number: sequence } = event;
    if (typeof sequence === "number") this.#sequence = Math.max(this.#sequence, sequence);
    const place = DELTAS.get(type);
    if (place) this.#addDelta(event, place);
  }

  toJSON(): object {
    return { ...this.#response, output: this.output };
  }

  #setItem({ output_index: index, item }: Members): void {
    if (typeof index !== "number" || !isMembers(item)) return;
    if (!this.#items.has(index) && this.#items.size >= MOST_ITEMS) return;
    if (this.#kept.take(item)) this.#items.set(index, item);
    else this.#isKnown = false;
  }

  #addDelta(event: Members, { member, object, parts }: DeltaPlace): void {
    const { output_index: index, delta } = event;
    const item = typeof index === "number" ? this.#items.get(index) : undefined;
    if (!item || typeof delta !== "string") return;
    const inner = object === undefined ? item : item[object];
    const part = parts ? partOf(item, parts, event[parts.index]) : inner;
    if (!isMembers(part)) return;
    const before = field(part, member);
    if (!isTextOrNothing(before)) this.#isKnown = false;
    part[member] = (typeof before === "string" ? before : "") + delta;
  }
}

/** Whether each member that should be a string is one. */
function hasTexts(value: unknown): boolean {
  return TEXTS.every((name) => isTextOrNothing(field(value, name)));
}

/** A part of an item, created if it is new. */
function partOf(
  item: Members,
  { list, type }: NonNullable<DeltaPlace["parts"]>,
  index: unknown,
): Members | undefined {
  const parts: unknown[] = Array.isArray(item[list]) ? item[list] : [];
  item[list] = parts;
  if (typeof index !== "number" || index < 0 || index > parts.length || index >= MOST_ITEMS) return undefined;
  const part = parts[index] ?? { type };
  if (!isMembers(part)) return undefined;
  parts[index] = part;
  return part;
}
