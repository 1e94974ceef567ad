import { ByteBlocks } from "../base/byte-blocks.ts";
import { takeTurn } from "../base/inflow.ts";
import type { ModelAttempt } from "./attempt.ts";
import type { DialectApi } from "./dialect.ts";
import type { DialectAnswer } from "./dialect-answer.ts";
import { UnfinishedAnswer } from "./failures.ts";

/** The part of an attempt that reading its answer needs. */
interface WholeAttempt extends Pick<ModelAttempt, "reported" | "receivedBytes" | "begins"> {
  readonly call: { readonly caller: { readonly workspaceId: number } };
}

/**
 * Reads an answer that is not streamed, and tells the attempt what it reports.
 * @throws UnfinishedAnswer if it is an error; whatever reading throws
 */
export async function readWhole(
  api: Pick<DialectApi, "answersInTokens" | "summarize">,
  attempt: WholeAttempt,
  answer: DialectAnswer,
): Promise<{ readonly received: Buffer<ArrayBuffer>; readonly text: string }> {
  const blocks = new ByteBlocks();
  for (let part = await answer.read(); part; part = await answer.read()) {
    blocks.add(part);
    if (api.answersInTokens) attempt.receivedBytes += part.length;
  }
  // Joining and decoding cannot be interrupted, so they take one turn.
  const turn = takeTurn(attempt.call.caller.workspaceId, { bytes: blocks.length });
  if (turn) await turn;
  if (answer.failure) throw answer.failure;
  const received = blocks.joined();
  const text = received.toString();
  const { isError, reported, textBytes } = api.summarize(text);
  attempt.reported = answer.usage === undefined ? reported : answer.usage;
  if (isError) throw new UnfinishedAnswer("error");
  attempt.begins();
  attempt.receivedBytes = textBytes ?? attempt.receivedBytes;
  return { received, text };
}
