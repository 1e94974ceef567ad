/** How much the server reads for a list of tasks with long texts. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { PAGE_BYTES } from "../../src/store/page-bytes.ts";
import { dispatch, run, type Stage, startStage } from "./support.ts";

setDefaultTimeout(60_000);

const TASKS = 40;
const PROMPT = "x".repeat(1_000_000);
let stage: Stage;

beforeAll(async () => {
  stage = await startStage({ tiers: { 1: ["a"] } });
  await stage.gateway.agent("plain");
  stage.upstream.script("a", { chunks: ["ok"] });
  for (let at = 1; at < TASKS; at++) await dispatch(stage.gateway, { agent: "plain", prompt: PROMPT });
  await run(stage.gateway, { agent: "plain", prompt: PROMPT });
});
afterAll(() => stage.stop());

/** The bytes that this process has read from files so far. */
function bytesRead(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}

test.skipIf(process.platform !== "linux")("a list reads the texts of its page, and no others", async () => {
  const before = bytesRead();
  const { status, body } = await stage.gateway.call("GET", "/v1/tasks?limit=200");
  const read = bytesRead() - before;
  expect([status, body.data.length]).toEqual([200, 4]);
  expect(body.next_cursor).not.toBeNull();
  // The texts of all tasks are ten times as long, and a search that compares them reads each several times.
  expect(read).toBeLessThan(2 * PAGE_BYTES);
});
