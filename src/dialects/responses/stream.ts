import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { Problem } from "../../base/errors.ts";
import type { EventFate, Pause, ReceivedAnswer, StreamReader } from "../dialect.ts";
import { field, isMembers, parsedOrNothing } from "../json.ts";
import { textMember, type VaryingMember } from "../pass/event-form.ts";
import { firstOf, positionOfHiddenWord, positionsOf, readEvent } from "../pass/events.ts";
import { EventNames, readEvents } from "../pass/read-events.ts";
import { failureEvents } from "./errors.ts";
import { MergedResponse } from "./merge.ts";
import { SentTexts } from "./sent-texts.ts";
import { responseTextBytes } from "./text-bytes.ts";
import { responsesUsage } from "./usage.ts";

const FAILED = "response.failed";
const LAST: ReadonlySet<unknown> = new Set(["response.completed", "response.incomplete", FAILED]);
const ERROR = "error";
const WORDS = [ERROR, ...[...LAST].map(String)];

/** Reads the events of a streamed response. */
export class ResponsesStreamReader implements StreamReader {
  #usage: LanguageModelV4Usage | null = null;
  /** The response in the last event. */
  #final: object | null = null;
  #sequence = -1;
  /** The response as received so far, once `answerOf` has merged it. */
  #received: object = {};

  get usage(): LanguageModelV4Usage | null {
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
    if (type === ERROR || name === ERROR || field(data, "error")) return ERROR;
    if (isPlain && text === "" && !LAST.has(name)) return "pass";
    // Some clients may find the end where others, or this reader, do not.
    const isUnclear = name !== null && name !== type && (LAST.has(name) || LAST.has(type));
    if (!isPlain || data === undefined || isUnclear) return ERROR;
    if (!LAST.has(type)) return "pass";
    const response = field(data, "response");
    this.#usage = responsesUsage(field(response, "usage"));
    if (type === FAILED) return ERROR;
    const sequence = field(data, "sequence_number");
    if (typeof sequence === "number") this.#sequence = sequence - 1;
    if (typeof response === "object") this.#final = response;
    return "end";
  }

  async answerOf(events: Buffer, pause: Pause): Promise<ReceivedAnswer> {
    const response = new MergedResponse();
    const sent = new SentTexts();
    const names = new EventNames();
    const areExact = await readEvents(events, pause, varyingInEvent, (event, value, isAlike) => {
      const { name, data, isPlain } = event;
      if ((data === "" && name === null && isPlain) || name === ERROR) return;
      const type = field(value, "type");
      names.add(event, type);
      if (isAlike && isMembers(value)) {
        response.addAlike(value);
        sent.addDelta(value);
        return;
      }
      response.add(value);
      // The error that ended the stream has not reached the client.
      const isError = type === ERROR || type === FAILED || field(value, "error");
      if (isMembers(value) && !isError) sent.add(value);
    });
    const output = field(this.#final, "output");
    // Unless it broke off, or its last event omits the output.
    const isComplete = this.#final !== null && Array.isArray(output) && output.length > 0;
    if (!this.#final) this.#sequence = response.sequence;
    this.#received = isComplete && this.#final ? this.#final : response.toJSON();
    const isExact = response.isKnown && areExact && names.areClear && sent.areIn(this.#received);
    const textBytes = Math.max(responseTextBytes(output), response.textBytes);
    const text = isExact ? JSON.stringify(this.#received) : events.toString();
    return { text, isWhole: this.#final !== null, textBytes };
  }

  errorEvents(problem: Problem, requestId: string): string {
    return failureEvents(problem, { requestId, sequence: this.#sequence + 1, received: this.#received });
  }
}

/** A delta, its number, and OpenAI's padding, of random length. */
function varyingInEvent(event: unknown): readonly VaryingMember[] {
  const delta = textMember(event, ["delta"]);
  if (delta.length === 0 || !isMembers(event)) return [];
  const isNumbered = Number.isSafeInteger(event.sequence_number);
  return [
    ...delta,
    ...(isNumbered ? [{ holder: event, name: "sequence_number" }] : []),
    ...textMember(event, ["obfuscation"]),
  ];
}
