import type { LanguageModelV4Usage } from "@ai-sdk/provider";
import type { Problem } from "../../base/errors.ts";
import type { EventFate, Pause, ReceivedAnswer, StreamReader } from "../dialect.ts";
import { field, parsedAll, parsedOrNothing } from "../json.ts";
import { BATCH_CHARACTERS, dataBatches, dataOf } from "../pass/events.ts";
import { failureEvents } from "./errors.ts";
import { MergedResponse } from "./merge.ts";
import { responseTextBytes } from "./text-bytes.ts";
import { responsesUsage } from "./usage.ts";

/** Parts of the last events' names. */
const LAST = ["response.completed", "response.incomplete", "response.failed"].map((name) =>
  Buffer.from(name),
);
const ERROR = "error";
/** Some clients decide by the event's name, others by the `type` in its data. */
const NAMED_ERROR = /^event: ?error$/m;

/** Reads the events of a streamed response. */
export class ResponsesStreamReader implements StreamReader {
  #usage: LanguageModelV4Usage | null = null;
  /** The response of the last event. */
  #final: object | null = null;
  #sequence = -1;
  /** The response as far as it was received, once `answerOf` has put it together. */
  #received: object = {};

  get usage(): LanguageModelV4Usage | null {
    return this.#usage;
  }

  matters(events: Buffer): boolean {
    return events.includes(ERROR) || LAST.some((name) => events.includes(name));
  }

  read(event: Buffer): EventFate {
    const data = parsedOrNothing(dataOf(event));
    const type = field(data, "type");
    if (type === "error" || field(data, "error") || NAMED_ERROR.test(event.toString())) return "error";
    const isFailed = type === "response.failed";
    if (type !== "response.completed" && type !== "response.incomplete" && !isFailed) return "pass";
    const response = field(data, "response");
    this.#usage = responsesUsage(field(response, "usage"));
    if (isFailed) return "error";
    const sequence = field(data, "sequence_number");
    if (typeof sequence === "number") this.#sequence = sequence - 1;
    if (typeof response === "object") this.#final = response;
    return "end";
  }

  async answerOf(events: Buffer, pause: Pause): Promise<ReceivedAnswer> {
    const output = field(this.#final, "output");
    if (this.#final && Array.isArray(output) && output.length > 0) {
      this.#received = this.#final;
      const text = JSON.stringify(this.#final);
      return { text, isWhole: true, textBytes: responseTextBytes(output) };
    }
    // It broke off, or its last event leaves the output out.
    const response = new MergedResponse();
    for (const batch of dataBatches(events)) {
      for (const event of parsedAll(batch.filter((data) => data !== ""))) response.add(event);
      const wait = pause(BATCH_CHARACTERS);
      if (wait) await wait;
    }
    if (!this.#final) this.#sequence = response.sequence;
    this.#received = response.toJSON();
    const { isExact, textBytes } = response;
    const text = isExact ? JSON.stringify(response) : events.toString();
    return { text, isWhole: this.#final !== null, textBytes };
  }

  errorEvents(problem: Problem, requestId: string): string {
    return failureEvents(problem, { requestId, sequence: this.#sequence + 1, received: this.#received });
  }
}
