/** A model whose answer never ends. */
import { expect, test } from "bun:test";
import { systemClock } from "../../src/base/clock.ts";
import { cappedFetch } from "../../src/models/capped-fetch.ts";
import { FakeClock } from "../support/clock.ts";
import { countAtRest, mostInOneTurn, startFlood } from "../support/flood.ts";

const EVENT = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "" } }] })}\n\n`;
/**
 * Two turns may begin between two checks of the count. An event is passed on together with everything in the same 2
 * KiB.
 */
const MOST_BETWEEN = 2 * (32 + Math.ceil(2_048 / EVENT.length));
const BURST = 20_000;

/** Counts the events that a reader who never pauses receives. */
function count(answer: Response) {
  const came = { count: 0 };
  const reader = answer.body?.getReader();
  const ended = (async () => {
    const decoder = new TextDecoder();
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      came.count += decoder.decode(part.value, { stream: true }).split("\n\n").length - 1;
    }
  })();
  return { came, cancel: () => Promise.all([reader?.cancel(), ended]) };
}

test("leaves the event loop to others after 32 events", async () => {
  const flood = await startFlood(EVENT);
  const { came, cancel } = count(await cappedFetch("openai-compatible", systemClock)(flood.origin));
  expect(await mostInOneTurn(() => came.count, 5_000)).toBeLessThanOrEqual(MOST_BETWEEN);
  await cancel();
  await flood.stop();
});

test("is limited to its rate after 20,000 events", async () => {
  const clock = new FakeClock();
  const flood = await startFlood(EVENT);
  const { came, cancel } = count(await cappedFetch("openai-compatible", clock)(flood.origin));
  const burst = await countAtRest(() => came.count, 0.9 * BURST);
  expect(burst).toBeLessThanOrEqual(BURST);
  clock.advance(1_000);
  expect((await countAtRest(() => came.count, burst + 1)) - burst).toBeLessThanOrEqual(1_000);
  await cancel();
  await flood.stop();
});
