import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { EventFate, Pause, ReceivedAnswer, StreamReader } from "../dialect.ts";
import { field, parsedAll, parsedOrNothing } from "../json.ts";
import { BATCH_CHARACTERS, dataBatches, dataOf } from "../pass/events.ts";
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

  async answerOf(events: Buffer, pause: Pause): Promise<ReceivedAnswer> {
    const message = new MergedMessage();
    for (const batch of dataBatches(events)) {
      for (const event of parsedAll(batch.filter((data) => data !== ""))) message.add(event);
      const wait = pause(BATCH_CHARACTERS);
      if (wait) await wait;
    }
    const { isExact, isWhole, textBytes } = message;
    return { text: isExact ? JSON.stringify(message) : events.toString(), isWhole, textBytes };
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
