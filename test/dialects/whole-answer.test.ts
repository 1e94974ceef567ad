/** How a whole answer is read: in turns with other work, and only while there is memory for it. */
import { expect, test } from "bun:test";
import { AnswerTooLarge } from "../../src/agents/index.ts";
import { takeTurn } from "../../src/base/inflow.ts";
import type { DialectAnswer } from "../../src/dialects/dialect-answer.ts";
import { readWhole } from "../../src/dialects/whole-answer.ts";

const attempt = () => ({
  ...{ reported: null, receivedBytes: 0, begins: () => {} },
  call: { caller: { workspaceId: 1 } },
});

function answering(parts: readonly string[]): DialectAnswer & { failure: Error | null } {
  const left = parts.map((part) => Buffer.from(part));
  return {
    ...{ status: 200, headers: new Headers(), hide: (text: string) => text, failure: null },
    ...{ read: async () => left.shift(), end: () => {} },
  };
}

const microtasks = async (): Promise<void> => {
  for (let n = 0; n < 50; n++) await Promise.resolve();
};

test("a long answer takes a turn before it is joined and decoded", async () => {
  let summarized = 0;
  const summarize = () => {
    summarized++;
    return { isError: false, reported: null, textBytes: undefined };
  };
  const read = () =>
    readWhole({ answersInTokens: false, summarize }, attempt(), answering(["x".repeat(1024 * 1024)]));
  const reading = Promise.all([read(), read(), read()]);
  await microtasks();
  // The first takes all of this turn.
  expect(summarized).toBeLessThanOrEqual(1);
  const turn = takeTurn(2, { bytes: 1 });
  await turn;
  expect(summarized).toBeLessThan(3);
  const [{ text }] = await reading;
  expect([text.length, summarized]).toEqual([1024 * 1024, 3]);
});

test("an answer whose memory was needed while it waited is not joined", async () => {
  const answer = answering(["x".repeat(1024 * 1024)]);
  const api = {
    answersInTokens: false,
    summarize: () => {
      throw new Error("it was decoded");
    },
  };
  // Nothing is left of this turn.
  void takeTurn(1, { bytes: 1024 * 1024 });
  const reading = readWhole(api, attempt(), answer).catch((error: unknown) => error);
  await microtasks();
  answer.failure = new AnswerTooLarge("the longest");
  expect(await reading).toBe(answer.failure);
});
