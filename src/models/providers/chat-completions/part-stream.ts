import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { createParser } from "eventsource-parser";
import { type AnswerOptions, AnswerParts } from "./answer-parts.ts";

/** The data of the event that ends an answer. */
const DONE = "[DONE]";

/**
 * The parts of an answer in a body of server-sent events, read in one pass. Nothing is read before a part is asked
 * for, and a reader that cancels ends the request. Parts that arrived before a failure are passed on before it.
 */
export function partStream(
  body: ReadableStream<Uint8Array>,
  options: AnswerOptions,
): ReadableStream<LanguageModelV4StreamPart> {
  const reader = body.getReader();
  // The parser itself skips a byte order mark.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let ready: LanguageModelV4StreamPart[] = [];
  const answer = new AnswerParts((part) => ready.push(part), options);
  const events = createParser({
    onEvent({ data }) {
      if (data !== DONE) answer.add(data);
    },
  });
  let failure: { readonly error: unknown } | undefined;
  let hasEnded = false;
  let isCancelled = false;

  async function readOn(): Promise<void> {
    const { done, value } = await reader.read();
    if (isCancelled) return;
    hasEnded = done;
    try {
      if (done) answer.end();
      else events.feed(decoder.decode(value, { stream: true }));
    } catch (error) {
      failure = { error };
      // The rest of the answer is not needed, so an error of its connection does not matter.
      reader.cancel(error).catch(() => {});
    }
  }

  return new ReadableStream<LanguageModelV4StreamPart>(
    {
      async pull(controller) {
        while (ready.length === 0 && !failure && !isCancelled) await readOn();
        if (isCancelled) return;
        if (ready.length === 0 && failure) throw failure.error;
        for (const part of ready) controller.enqueue(part);
        ready = [];
        if (hasEnded && !failure) controller.close();
      },
      cancel(reason) {
        isCancelled = true;
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
