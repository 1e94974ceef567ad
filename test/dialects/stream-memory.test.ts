/** A stream in progress does not keep the request that it answers. */
import { heapStats } from "bun:jsc";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { firstLine } from "../support/process.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

const STREAMS = 10;
const REQUEST_BYTES = 5_000_000;

let stage: DialectStage;
// The test's own requests must not be in this process's memory.
const upstream = Bun.spawn(
  [
    process.execPath,
    "-e",
    `const server = Bun.serve({ port: 0, idleTimeout: 0, async fetch(request) {
       await request.arrayBuffer();
       const chunk = 'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\\n\\n';
       const stream = new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode(chunk)) });
       return new Response(stream, { headers: { "content-type": "text/event-stream" } });
     } });
     console.log(server.port);`,
  ],
  { stdio: ["ignore", "pipe", "inherit"] },
);
beforeAll(async () => {
  const port = await firstLine(upstream.stdout);
  stage = await openDialectStage({
    providers: `  held: { kind: openai-compatible, base_url: "http://127.0.0.1:${port}/v1" }
  native: { kind: openai, base_url: "http://127.0.0.1:${port}/v1", api_key: sk-x }`,
  });
});
afterAll(async () => {
  upstream.kill();
  await stage.stop();
});

function heldBytes(): number {
  Bun.gc(true);
  return heapStats().extraMemorySize;
}

test.each([
  ["chat/completions", { model: "held/x", messages: [] }],
  ["responses", { model: "native/x", input: [] }],
])("ten streams of %s with requests of 5 MB keep none of the requests", async (path, asked) => {
  const before = heldBytes();
  const client = Bun.spawn(
    [
      process.execPath,
      "-e",
      `const body = JSON.stringify({ ...${JSON.stringify(asked)}, stream: true, padding: "x".repeat(${REQUEST_BYTES}) });
       const readers = [];
       for (let n = 0; n < ${STREAMS}; n++) {
         const headers = { authorization: "Bearer " + process.env.KEY, "content-type": "application/json" };
         const response = await fetch(process.env.URL, { method: "POST", headers, body });
         const reader = response.body.getReader();
         await reader.read();
         readers.push(reader);
       }
       console.log("open");
       setInterval(() => readers.length, 1_000);`,
    ],
    {
      env: { URL: `${stage.gateway.url}/v1/${path}`, KEY: stage.gateway.admin },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  try {
    expect(await firstLine(client.stdout)).toBe("open");
    expect(heldBytes() - before).toBeLessThan((STREAMS * REQUEST_BYTES) / 2);
  } finally {
    client.kill();
  }
});
