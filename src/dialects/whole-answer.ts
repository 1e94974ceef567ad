import { ByteBlocks } from "../base/byte-blocks.ts";
import type { ModelAttempt } from "./attempt.ts";
import type { DialectApi } from "./dialect.ts";
import type { DialectAnswer } from "./dialect-answer.ts";
import { UnfinishedAnswer } from "./failures.ts";

/**
 * Reads an answer that is not streamed, and tells the attempt what it reports.
 * @throws UnfinishedAnswer if it is an error; whatever reading throws
 */
export async function readWhole(
  api: Pick<DialectApi, "answersInTokens" | "summarize">,
  attempt: ModelAttempt,
  answer: DialectAnswer,
): Promise<{ readonly received: Buffer<ArrayBuffer>; readonly text: string }> {
  const blocks = new ByteBlocks();
  for (let part = await answer.read(); part; part = await answer.read()) {
    blocks.add(part);
    if (api.answersInTokens) attempt.receivedBytes += part.length;
  }
  const received = blocks.joined();
  const text = received.toString();
  const { isError, reported, textBytes } = api.summarize(text);
  attempt.reported = answer.usage === undefined ? reported : answer.usage;
  if (isError) throw new UnfinishedAnswer("error");
  attempt.begins();
  attempt.receivedBytes = textBytes ?? attempt.receivedBytes;
  return { received, text };
}
