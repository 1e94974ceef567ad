/** A stop of many long streams. Each leaves its text as evidence, in turns of the event loop. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ByteBlocks } from "../../src/base/byte-blocks.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

const STREAMS = 12;
/** As much as a turn of the event loop allows, so two of them are not read in the same turn. */
const BYTES = 600_000;
const PART = `data: {"choices":[{"index":0,"delta":{"content":"${"x".repeat(20_000)}"}}]}\n\n`;

const upstream = Bun.serve({
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    await request.arrayBuffer();
    const parts = PART.repeat(Math.ceil(BYTES / PART.length));
    const stream = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from(parts)) });
    return new Response(stream, { headers: { "content-type": "text/event-stream" } });
  },
});
const { joined } = ByteBlocks.prototype;
let stage: DialectStage;
beforeAll(async () => {
  stage = await openDialectStage({
    providers: `  held: { kind: openai-compatible, base_url: "http://127.0.0.1:${upstream.port}/v1" }`,
  });
});
afterAll(async () => {
  ByteBlocks.prototype.joined = joined;
  await stage.stop();
  await upstream.stop(true);
});

test("reads one long answer in a turn", async () => {
  const { gateway } = stage;
  const body = JSON.stringify({ model: "held/x", messages: [], stream: true });
  const headers = { authorization: `Bearer ${gateway.admin}`, "content-type": "application/json" };
  const open = async () => {
    const { body: events } = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers,
      body,
    });
    const reader = (events as ReadableStream<Uint8Array>).getReader();
    for (let bytes = 0; bytes < BYTES; ) bytes += (await reader.read()).value?.length ?? BYTES;
    return reader;
  };
  const readers = await Promise.all(Array.from({ length: STREAMS }, open));
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  const answersByTurn = new Map<number, number>();
  ByteBlocks.prototype.joined = function (this: ByteBlocks) {
    if (this.length >= BYTES) answersByTurn.set(turn, (answersByTurn.get(turn) ?? 0) + 1);
    return joined.call(this);
  };
  count();
  expect((await gateway.call("POST", "/v1/workspace/stop")).status).toBe(200);
  for (const reader of readers) while (!(await reader.read()).done);
  isOver = true;
  const counts = [...answersByTurn.values()];
  expect(counts.reduce((sum, each) => sum + each, 0)).toBe(STREAMS);
  // Turns are counted in another callback than they begin in.
  expect(Math.max(...counts)).toBeLessThanOrEqual(2);
});
