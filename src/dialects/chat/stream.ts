import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { EventFate, Pause, ReceivedAnswer, StreamReader } from "../dialect.ts";
import { field, parsedOrNothing } from "../json.ts";
import { textMember, type VaryingMember } from "../pass/event-form.ts";
import { firstOf, positionOfHiddenWord, positionsOf, readEvent } from "../pass/events.ts";
import { readEvents } from "../pass/read-events.ts";
import { DELTA_TEXTS, MergedCompletion } from "./merge.ts";
import { chatUsage } from "./usage.ts";

const USAGE = '"usage"';
const ERROR = '"error"';
/** Chunks have no event names. Any chunk that has one is parsed. */
const NAMED = "event:";
/** The name of an event that has none. */
const MESSAGE = "message";
const ERROR_NAME = "error";
const DONE = "[DONE]";
const WORDS = [DONE, ERROR, NAMED];
const LEFT_BRACE = 0x7b;
const COLON = 0x3a;

/** Reads the chunks of a streamed chat completion. */
export class ChatStreamReader implements StreamReader {
  readonly #wantsUsage: boolean;
  readonly #answers: number;
  #usage: LanguageModelV4Usage | null = null;

  /**
   * @param wantsUsage whether the client requested the usage chunk
   * @param answers how many answers the client requested
   */
  constructor(wantsUsage: boolean, answers: number) {
    this.#wantsUsage = wantsUsage;
    this.#answers = answers;
  }

  get usage(): LanguageModelV4Usage | null {
    return this.#usage;
  }

  /** Most chunks pass unread: parsing each one took four times as long as searching it. */
  firstToRead(events: Buffer): number {
    return firstOf([...positionsOf(events, WORDS), positionOfUsage(events), positionOfHiddenWord(events)]);
  }

  read(received: Buffer): EventFate {
    const event = readEvent(received);
    const { name, data, isPlain } = event;
    if (isPlain && data === "" && name !== ERROR_NAME) return "pass";
    if (isPlain && isDone(data)) return "end";
    const chunk = parsedOrNothing(data);
    // A client may find the end in data that cannot be read here.
    if (!isPlain || chunk === undefined || name === ERROR_NAME || field(chunk, "error")) return "error";
    const usage = chatUsage(field(chunk, "usage"));
    if (!usage) return "pass";
    this.#usage = usage;
    const choices = field(chunk, "choices");
    const isOnlyUsage = Array.isArray(choices) && choices.length === 0;
    return isOnlyUsage && !this.#wantsUsage ? "drop" : "pass";
  }

  async answerOf(events: Buffer, pause: Pause): Promise<ReceivedAnswer> {
    const completion = new MergedCompletion(this.#answers);
    let areClear = true;
    const areExact = await readEvents(events, pause, varyingInChunk, (event, chunk) => {
      const { name, data, isPlain } = event;
      // The error that ended the stream has not reached the client.
      if (name === ERROR_NAME || field(chunk, "error")) return;
      if (!isPlain || (name !== null && name !== MESSAGE)) areClear = false;
      if (data === "" || data.trim() === DONE) return;
      if (chunk === undefined) completion.addUnread(data);
      else completion.add(chunk);
    });
    const { isExact, isWhole, textBytes } = completion;
    const text = isExact && areExact && areClear ? JSON.stringify(completion) : events.toString();
    return { text, isWhole, textBytes };
  }
}

/** A chunk's text, and OpenAI's padding, of random length. */
function varyingInChunk(chunk: unknown): readonly VaryingMember[] {
  const choices = field(chunk, "choices");
  const delta = Array.isArray(choices) ? field(choices[0], "delta") : undefined;
  const calls = field(delta, "tool_calls");
  const called = Array.isArray(calls) ? field(calls[0], "function") : undefined;
  return [
    ...textMember(delta, DELTA_TEXTS),
    ...textMember(called, ["arguments"]),
    ...textMember(chunk, ["obfuscation"]),
  ];
}

/** Where a chunk with usage begins it; -1 if none has usage. Most have `null` in its place. */
function positionOfUsage(events: Buffer): number {
  for (let at = events.indexOf(USAGE); at >= 0; at = events.indexOf(USAGE, at + 1)) {
    let next = at + USAGE.length;
    while (events[next] === COLON || (events[next] ?? 0) === 0x20) next++;
    if (events[next] === LEFT_BRACE) return at;
  }
  return -1;
}

/** Some clients look only at the start of the data. */
function isDone(data: string): boolean {
  return data.trimStart().startsWith(DONE);
}
