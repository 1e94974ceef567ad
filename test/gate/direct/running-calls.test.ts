/** Which calls a limit counts, a drain waits for, and a stop finds. */
import { expect, test } from "bun:test";
import { RunningCalls } from "../../../src/gate/direct/running-calls.ts";

const call = (more: object = {}) => ({
  ...{ workspaceId: 1, agentId: 1, abort: new AbortController(), wait: null },
  ...more,
});

test("calls that wait in a queue do not count as calls in flight", () => {
  const running = new RunningCalls();
  for (let count = 0; count < 10; count++) running.add(call({ isQueued: true }));
  const end = running.add(call());
  expect([running.hasAtLeast(1, 1), running.hasAtLeast(2, 1)]).toEqual([true, false]);
  end();
  end();
  expect(running.hasAtLeast(1, 1)).toBe(false);
});

test("a drain does not wait for a call that is left to the next start, and a stop finds it", async () => {
  const running = new RunningCalls();
  const left = call({ isQueued: true, isLeftToNextStart: true });
  running.add(left);
  await running.drain();
  running.stopAgent(1, 1);
  expect(left.abort.signal.aborted).toBe(true);
});
