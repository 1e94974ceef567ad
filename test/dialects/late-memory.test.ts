/** Outcomes that wait for a store that cannot be written keep no long answers in memory. */
import { heapStats } from "bun:jsc";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ownConnection } from "../support/own-connection.ts";
import { firstLine } from "../support/process.ts";
import { until } from "../support/until.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

const CALLS = 10;
const ANSWER_BYTES = 5_000_000;

let stage: DialectStage;
// The answers must not be in this process's memory for any other reason.
const upstream = Bun.spawn(
  [
    process.execPath,
    "-e",
    `const text = "word ".repeat(${ANSWER_BYTES / 5});
     const usage = { prompt_tokens: 1, completion_tokens: 1 };
     const server = Bun.serve({ port: 0, async fetch(request) {
       await request.arrayBuffer();
       return Response.json({ input_tokens: 1, choices: [{ index: 0, message: { content: text } }], usage });
     } });
     console.log(server.port);`,
  ],
  { stdio: ["ignore", "pipe", "inherit"] },
);
beforeAll(async () => {
  const port = await firstLine(upstream.stdout);
  stage = await openDialectStage({
    providers: `  held: { kind: openai-compatible, base_url: "http://127.0.0.1:${port}/v1" }
  counts: { kind: anthropic, base_url: "http://127.0.0.1:${port}/v1", api_key: sk-upstream }`,
  });
});
afterAll(async () => {
  upstream.kill();
  await stage.stop();
});

function heldBytes(): number {
  Bun.gc(true);
  const { heapSize, extraMemorySize } = heapStats();
  return heapSize + extraMemorySize;
}

test.each([
  ["a whole answer", "/v1/chat/completions", "held/x", "model.call"],
  ["a token count", "/v1/messages/count_tokens", "counts/x", "model.count"],
])("%s of 5 MB is not kept in memory with its outcome", async (_, path, model, action) => {
  const body = { model, max_tokens: 10, messages: [{ role: "user", content: "hi" }] };
  const call = () => stage.gateway.call("POST", path, { body });
  expect((await call()).status).toBe(200);
  const own = ownConnection(stage.gateway.dataDir);
  const before = heldBytes();
  own.run(`CREATE TRIGGER full BEFORE INSERT ON ledger WHEN NEW.bytes LIKE '%"phase":"outcome"%'
    BEGIN SELECT RAISE(ABORT, 'full'); END`);
  try {
    for (let n = 0; n < CALLS; n++) expect((await call()).status).toBe(503);
    expect(heldBytes() - before).toBeLessThan((CALLS * ANSWER_BYTES) / 2);
  } finally {
    own.run("DROP TRIGGER full");
  }
  await until(async () => {
    const outcomes = (await stage.entries(action)).filter(({ phase }) => phase === "outcome");
    return outcomes.length === CALLS + 1;
  });
});
