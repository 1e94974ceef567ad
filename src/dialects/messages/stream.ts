import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { EventFate, Pause, StreamedAnswer, StreamReader } from "../dialect.ts";
import { field, parsedOrNothing } from "../json.ts";
import { allData, dataOf } from "../pass/events.ts";
import { MergedMessage } from "./merge.ts";
import { addUsage, messagesUsage } from "./usage.ts";

/** Part of the names of the events with usage, and of the last one. */
const OF_MESSAGE = "message_";
const ERROR = "error";
/** Some clients decide by the event's name, others by the `type` in its data. */
const NAMED_ERROR = /^event: ?error$/m;

/** Reads the events of a streamed message. */
export class MessagesStreamReader implements StreamReader {
  readonly #reported: Record<string, unknown> = Object.create(null);
  #usage: LanguageModelV4Usage | null = null;

  get usage(): LanguageModelV4Usage | null {
    return this.#usage;
  }

  matters(events: Buffer): boolean {
    return events.includes(OF_MESSAGE) || events.includes(ERROR);
  }

  read(event: Buffer): EventFate {
    const data = parsedOrNothing(dataOf(event));
    const type = field(data, "type");
    if (type === "error" || NAMED_ERROR.test(event.toString())) return "error";
    if (type === "message_stop") return "end";
    if (type === "message_start") this.#begins(field(field(data, "message"), "usage"));
    else if (type === "message_delta") this.#note(field(data, "usage"));
    return "pass";
  }

  async answerOf(events: Buffer, pause: Pause): Promise<StreamedAnswer> {
    const message = new MergedMessage();
    for (const data of allData(events)) {
      message.add(parsedOrNothing(data));
      const wait = pause(data.length);
      if (wait) await wait;
    }
    return { json: message.isWhole ? JSON.stringify(message) : null, textBytes: message.textBytes };
  }

  /**
   * The first event counts an output of which nothing has been written yet. An answer that breaks off is charged by what
   * was received instead.
   */
  #begins(usage: unknown): void {
    if (typeof usage !== "object" || usage === null) return;
    this.#note({ ...usage, output_tokens: undefined, output_tokens_details: undefined });
  }

  #note(usage: unknown): void {
    if (typeof usage !== "object" || usage === null) return;
    addUsage(this.#reported, usage);
    this.#usage = messagesUsage(this.#reported);
  }
}
