import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { EventFate, Pause, ReceivedAnswer, StreamReader } from "../dialect.ts";
import { field, parsedOrNothing } from "../json.ts";
import { textMember, type VaryingMember } from "../pass/event-form.ts";
import { firstOf, positionOfHiddenWord, positionsOf, readEvent } from "../pass/events.ts";
import { isEmpty } from "../pass/merged-members.ts";
import { EventNames, readEvents } from "../pass/read-events.ts";
import { DELTA_TEXTS, MergedMessage } from "./merge.ts";
import { addUsage, messagesUsage } from "./usage.ts";

/** Part of the names of the events that carry usage, and of the last event. */
const OF_MESSAGE = "message_";
const ERROR = "error";
const LAST = "message_stop";
const WORDS = [OF_MESSAGE, ERROR];

/** Reads the events of a streamed message. */
export class MessagesStreamReader implements StreamReader {
  readonly #reported: Record<string, unknown> = Object.create(null);
  #usage: LanguageModelV4Usage | null = null;
  /** Whether usage was reported since it was last counted. */
  #isUncounted = false;

  get usage(): LanguageModelV4Usage | null {
    if (this.#isUncounted) this.#usage = messagesUsage(this.#reported);
    this.#isUncounted = false;
    return this.#usage;
  }

  firstToRead(events: Buffer): number {
    return firstOf([...positionsOf(events, WORDS), positionOfHiddenWord(events)]);
  }

  /** Some clients go by the event's name, others by the `type` in its data. */
  read(event: Buffer): EventFate {
    const { name, data: text, isPlain } = readEvent(event);
    const data = parsedOrNothing(text);
    const type = field(data, "type");
    if (type === ERROR || name === ERROR) return ERROR;
    if (isPlain && text === "" && name !== LAST) return "pass";
    // Some clients may find the end where others, or this reader, do not.
    const isUnclear = name !== null && name !== type && (name === LAST || type === LAST);
    if (!isPlain || data === undefined || isUnclear) return ERROR;
    if (type === LAST) return "end";
    if (type === "message_start") this.#begins(field(field(data, "message"), "usage"));
    else if (type === "message_delta") this.#note(field(data, "usage"));
    return "pass";
  }

  async answerOf(events: Buffer, pause: Pause): Promise<ReceivedAnswer> {
    const message = new MergedMessage();
    const names = new EventNames();
    const areExact = await readEvents(events, pause, varyingInEvent, (event, value) => {
      const { name, data, isPlain } = event;
      const type = field(value, "type");
      // The error that ended the stream has not reached the client.
      if ((data === "" && name === null && isPlain) || name === ERROR || type === ERROR) return;
      names.add(event, type);
      if (value === undefined) message.addUnread(data);
      else message.add(value);
    });
    const { isExact, isWhole, textBytes } = message;
    const text = isExact && areExact && names.areClear ? JSON.stringify(message) : events.toString();
    return { text, isWhole, textBytes };
  }

  /**
   * The first event counts output that has not been written yet. An answer that breaks off is charged for what was
   * received instead.
   */
  #begins(usage: unknown): void {
    if (typeof usage !== "object" || usage === null) return;
    this.#note({ ...usage, output_tokens: undefined, output_tokens_details: undefined });
  }

  #note(usage: unknown): void {
    if (typeof usage !== "object" || usage === null || isEmpty(usage)) return;
    addUsage(this.#reported, usage);
    this.#isUncounted = true;
  }
}

function varyingInEvent(event: unknown): readonly VaryingMember[] {
  return textMember(field(event, "delta"), DELTA_TEXTS);
}
