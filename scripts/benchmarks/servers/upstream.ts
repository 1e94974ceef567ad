/** The tests' fake model in a separate process, with the scripts that the benchmarks need. */
import { startFakeModel } from "../../../test/support/fake-model.ts";
import { answerLines } from "../processes/lines.ts";
import {
  BURST_CHUNKS,
  BURST_WAIT_MS,
  CHUNKS,
  chunks,
  LATE_WAIT_MS,
  LONG_CHARACTERS,
  LONG_CHUNKS,
  LONG_PACE_MS,
  MODELS,
  PACE_MS,
  PASSED_CHUNKS,
  SHORT_CHUNKS,
  STEADY_CHUNKS,
} from "./script.ts";

await answerLines(async () => {
  const upstream = startFakeModel({ record: false });
  upstream.script(MODELS.plain, { chunks: chunks(CHUNKS) });
  upstream.script(MODELS.short, { chunks: chunks(SHORT_CHUNKS) });
  upstream.script(MODELS.passed, { chunks: chunks(PASSED_CHUNKS) });
  // With a gate, even an open one, chunks are written one by one.
  upstream.script(MODELS.apart, { chunks: chunks(PASSED_CHUNKS), gate: Promise.resolve() });
  upstream.script(MODELS.paced, { chunks: chunks(CHUNKS), delayMs: PACE_MS });
  upstream.script(MODELS.late, {
    chunks: chunks(CHUNKS),
    firstDelayMs: LATE_WAIT_MS,
    delayMs: PACE_MS,
  });
  upstream.script(MODELS.burst, { chunks: chunks(BURST_CHUNKS), firstDelayMs: BURST_WAIT_MS });
  upstream.script(MODELS.steady, { chunks: chunks(STEADY_CHUNKS), delayMs: PACE_MS });
  upstream.script(MODELS.hang, { hang: true });
  upstream.script(MODELS.long, {
    chunks: Array.from({ length: LONG_CHUNKS }, () => "w ".repeat(LONG_CHARACTERS / 2)),
    delayMs: LONG_PACE_MS,
  });
  return { port: Number(new URL(upstream.url).port) };
});
