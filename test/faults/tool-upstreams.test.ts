/** Upstreams of tools that fail in every way, from the socket or pipe up to the task that called them. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { verify } from "../ledger/verify/scene.ts";
import { FakeClock } from "../support/clock.ts";
import { CALL_ID, mcpResult, type RawMcpStep } from "../support/raw-mcp.ts";
import {
  chunkOf,
  headOf,
  LAST_CHUNK,
  type RawRequest,
  type RawUpstream,
  type Step,
  startRawUpstream,
} from "../support/raw-upstream.ts";
import { dispatch, ended, ledger, type Stage, startStage, unsettled, until } from "../tasks/support.ts";

setDefaultTimeout(60_000);

const SECRET = "raw-upstream-hunter22";
const TIMEOUT_MS = 20_000;
const MIB = 1024 * 1024;
const STDIO = join(import.meta.dir, "..", "support", "raw-mcp.ts");
/** Part of every failing answer. A model must never get it as if it were an answer. */
const PIECE = "HALF-AN-ANSWER";
const WHOLE = "before 😀 after";

let raw: RawUpstream;
let stage: Stage;
let clock: FakeClock;
let dataDir: string;
const logged: string[] = [];

beforeAll(async () => {
  raw = await startRawUpstream();
  clock = new FakeClock();
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  const line = (message: string, fields?: object) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  stage = await startStage({
    clock,
    dataDir,
    log: { debug: line, info: line, warn: line, error: line },
    tiers: { 1: ["a"] },
    more: `connectors: { timeout_ms: ${TIMEOUT_MS} }`,
  });
  await stage.gateway.agent("worker", { approvals: [] });
  stage.upstream.script("a", ({ body }) =>
    body.messages.at(-1)?.role === "tool"
      ? { chunks: ["Done."] }
      : { toolCalls: [{ name: "up__tell", arguments: {} }] },
  );
});
afterEach(async () => {
  // A program that does not end by itself is given time to do so.
  await whileTimePasses(() => stage.gateway.call("DELETE", "/v1/connectors/up"));
});
afterAll(async () => {
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  expect((await verify(join(dataDir, "gatehouse.db"))).verdict).toBe("holds");
  expect(logged.join("\n")).not.toContain(SECRET);
  await stage.stop();
  await raw.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** Runs the work while the gateway's clock advances, roughly a hundred times as fast as ours. */
async function whileTimePasses<Value>(work: () => Promise<Value>): Promise<Value> {
  const timer = setInterval(() => clock.advance(TIMEOUT_MS / 8), 25);
  return await work().finally(() => clearInterval(timer));
}

/** A released connection is closed on the network too, at most a few seconds later. */
async function expectNothingOpen(): Promise<void> {
  await whileTimePasses(() => until(() => raw.answering === 0));
}

async function connect(definition: object): Promise<void> {
  const answer = await stage.gateway.call("POST", "/v1/connectors", { body: { name: "up", ...definition } });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  expect(answer.body).toMatchObject({ status: "ready", tools: [{ name: "up.tell" }] });
}

const SPEC = {
  openapi: "3.1.0",
  info: { title: "Raw", version: "1" },
  paths: { "/tell": { get: { operationId: "tell", responses: { 200: { description: "ok" } } } } },
};

/** Connects an HTTP API that answers a call with these steps. */
async function connectApi(steps: (request: RawRequest) => readonly Step[]): Promise<void> {
  raw.script(steps);
  const auth = { type: "bearer", token: SECRET };
  await connect({ kind: "openapi", spec: SPEC, base_url: raw.url, auth });
}

interface RpcRequest {
  readonly id?: number;
  readonly method: string;
  readonly params?: { readonly protocolVersion?: string };
}

function json(value: object, status = "200 OK"): readonly Step[] {
  const text = JSON.stringify(value);
  return [
    headOf({ "content-type": "application/json", "content-length": Buffer.byteLength(text) }, status),
    text,
  ];
}

/** Connects an MCP server over Streamable HTTP that answers a call with these steps. */
async function connectMcp(steps: (id: number) => readonly Step[]): Promise<void> {
  raw.script(({ method, body }) => {
    if (method !== "POST") return [headOf({ "content-length": 0 }, "405 Method Not Allowed")];
    const message = JSON.parse(body) as RpcRequest;
    if (message.id === undefined) return [headOf({ "content-length": 0 }, "202 Accepted")];
    if (message.method === "tools/call") return steps(message.id);
    return json({ jsonrpc: "2.0", id: message.id, result: mcpResult(message.method, message.params) });
  });
  const headers = { authorization: `Bearer ${SECRET}` };
  await connect({ kind: "mcp", transport: { type: "http", url: `${raw.url}/mcp`, headers } });
}

async function connectStdio(steps: readonly (RawMcpStep | string | Uint8Array)[]): Promise<void> {
  const encoded = steps.map((step) =>
    step instanceof Uint8Array || (typeof step === "string" && step.includes("{"))
      ? { bytes: Buffer.from(step).toString("base64") }
      : step,
  );
  const args = [STDIO, JSON.stringify(encoded)];
  const transport = { type: "stdio", command: process.execPath, args, env: { KEY: SECRET } };
  await connect({ kind: "mcp", transport });
}

/**
 * Runs a task that calls the tool once.
 * @returns the call, and what the model was told about it
 */
async function runCall(hangs = false) {
  const id = await dispatch(stage.gateway, { agent: "worker", tools: ["up.tell"] });
  const ending = () => ended(stage.gateway, id);
  const task = await (hangs ? whileTimePasses(ending) : ending());
  expect(task).toMatchObject({ status: "succeeded", output: "Done.", error: null });
  expect(task.tools_called).toHaveLength(1);
  const told = String(
    stage.upstream.requests.at(-1)?.body.messages.findLast(({ role }) => role === "tool")?.content,
  );
  const entries = (await ledger(stage.gateway)).filter((entry) => entry.task === id);
  expect(unsettled(entries)).toEqual([]);
  expect(JSON.stringify([task, entries, told])).not.toContain(SECRET);
  const { usage } = (await stage.gateway.call("GET", "/v1/workspace")).body;
  expect(usage.tasks_running).toBe(0);
  return { status: task.tools_called[0].status as string, told };
}

async function expectFailed(hangs: boolean): Promise<void> {
  const { status, told } = await runCall(hangs);
  expect(status).toBe("failed");
  expect(told).not.toContain(PIECE);
  expect(told).not.toContain("\ufffd");
  if (hangs) expect(told).toMatch(/did not answer within|sent neither an answer nor progress/);
}

/** The two parts of a text that is cut inside its emoji. */
function cutInHalf(text: string): [Uint8Array, Uint8Array] {
  const bytes = Buffer.from(text);
  const at = bytes.indexOf(Buffer.from("😀")) + 2;
  return [bytes.subarray(0, at), bytes.subarray(at)];
}
const [TEXT_START, TEXT_END] = cutInHalf(`${PIECE} 😀 after`);

interface Fault {
  readonly steps: readonly Step[];
  readonly hangs?: true;
}

/** What any HTTP server can do wrong, whatever the answer's type. */
function httpFaults(type: string, piece: Uint8Array): Readonly<Record<string, Fault>> {
  const chunked = headOf({ "content-type": type, "transfer-encoding": "chunked" });
  const sized = (length: number) => headOf({ "content-type": type, "content-length": length });
  const squeezed = gzipSync(piece).subarray(0, -12);
  return {
    "hangs before its headers": { steps: ["hang"], hangs: true },
    "hangs within its headers": { steps: ["HTTP/1.1 200 OK\r\ncontent-", "hang"], hangs: true },
    "hangs after its headers": { steps: [chunked, "hang"], hangs: true },
    "hangs within its answer": { steps: [chunked, chunkOf(piece), "hang"], hangs: true },
    "closes without sending anything": { steps: ["end"] },
    "resets without sending anything": { steps: ["reset"] },
    "closes within its headers": { steps: ["HTTP/1.1 200 OK\r\ncontent-", "end"] },
    "closes after its headers": { steps: [chunked, "end"] },
    "closes within its chunks": { steps: [chunked, chunkOf(piece), "end"] },
    "closes within a chunk": { steps: [chunked, `fff\r\n${PIECE}`, "end"] },
    "resets within its chunks": { steps: [chunked, chunkOf(piece), "reset"] },
    "announces a longer body and closes": { steps: [sized(9_999), piece, "end"] },
    "announces a longer body and hangs": { steps: [sized(9_999), piece, "hang"], hangs: true },
    "sends chunks without a size": { steps: [chunked, chunkOf(piece), "zz\r\nwhat\r\n", "hang"] },
    "does not speak HTTP": { steps: ["SSH-2.0-OpenSSH_9.6\r\n\r\n", "end"] },
    "sends endless headers": {
      steps: ["HTTP/1.1 200 OK\r\n", () => `x-more: ${"x".repeat(16_000)}\r\n`],
    },
    "compresses an answer that it cuts off": {
      steps: [
        headOf({ "content-type": type, "content-encoding": "gzip", "content-length": squeezed.length }),
        squeezed,
        "end",
      ],
    },
    "answers 429 with Retry-After": {
      steps: [headOf({ "retry-after": 5, "content-length": 0 }, "429 Too Many Requests")],
    },
    "answers 503 with its caller's secret": {
      steps: [
        headOf({ "content-type": "text/plain", "content-length": SECRET.length }, "503 Unavailable"),
        SECRET,
      ],
    },
  };
}

describe("a call of an HTTP API fails, and the task continues, if the API", () => {
  const faults = httpFaults("text/plain", TEXT_START);
  test.each(Object.keys(faults))("%s", async (name) => {
    const { steps, hangs = false } = faults[name] as Fault;
    await connectApi(() => steps);
    await expectFailed(hangs);
    await expectNothingOpen();
    // Nothing is left behind that could affect the next call.
    raw.script(() => [
      headOf({ "content-type": "text/plain", "content-length": Buffer.byteLength(WHOLE) }),
      WHOLE,
    ]);
    expect(await runCall()).toEqual({ status: "succeeded", told: WHOLE });
  });
});

describe("a call over Streamable HTTP fails, and the task continues, if the server", () => {
  const answer = (id: number | string) =>
    JSON.stringify({
      jsonrpc: "2.0",
      id,
      result: { content: [{ type: "text", text: `${PIECE} 😀 after` }] },
    });
  const [start] = cutInHalf(answer(1));
  const faults = {
    ...httpFaults("application/json", start),
    "announces a shorter body than it sends": {
      steps: [headOf({ "content-type": "application/json", "content-length": 60 }), answer(1), "end"],
    },
    "ends its chunks within a character": {
      steps: [
        headOf({ "content-type": "application/json", "transfer-encoding": "chunked" }),
        chunkOf(start),
        LAST_CHUNK,
      ],
    },
    "sends a body without a length and resets the connection": {
      steps: [headOf({ "content-type": "application/json", connection: "close" }), start, "reset"],
    },
    "sends a body without a length and closes within it": {
      steps: [headOf({ "content-type": "application/json", connection: "close" }), start, "end"],
    },
  } satisfies Record<string, Fault>;
  test.each(Object.keys(faults))("%s", async (name) => {
    const { steps, hangs = false } = (faults as Record<string, Fault>)[name] as Fault;
    await connectMcp(() => steps);
    await expectFailed(hangs);
    await expectNothingOpen();
  });

  const events = headOf({ "content-type": "text/event-stream", "transfer-encoding": "chunked" });
  const [eventStart] = cutInHalf(`event: message\ndata: ${answer(1)}\n\n`);
  const streams: Record<string, Fault> = {
    "hangs within an event": { steps: [events, chunkOf(eventStart), "hang"], hangs: true },
    "closes within an event": { steps: [events, chunkOf(eventStart), "end"] },
    "resets within an event": { steps: [events, chunkOf(eventStart), "reset"] },
    "ends its stream within an event": { steps: [events, chunkOf(eventStart), LAST_CHUNK] },
    "sends an endless event": {
      steps: [events, () => Buffer.from(chunkOf("x".repeat(MIB))).toString()],
    },
    "sends only comments": { steps: [events, chunkOf(": ping\n\n"), "hang"], hangs: true },
  };
  test.each(Object.keys(streams))("%s", async (name) => {
    const { steps, hangs = false } = streams[name] as Fault;
    await connectMcp(() => steps);
    await expectFailed(hangs);
    await expectNothingOpen();
  });
});

describe("a call over stdio fails, and the task continues, if the program", () => {
  const line = JSON.stringify({
    jsonrpc: "2.0",
    id: Number(CALL_ID),
    result: { content: [{ type: "text", text: `${PIECE} 😀 after` }] },
  });
  const [start] = cutInHalf(line);
  test.each<[string, readonly (RawMcpStep | Uint8Array)[], boolean]>([
    ["hangs", ["hang"], true],
    ["hangs during its answer", [start, "hang"], true],
    ["exits without printing anything", ["exit"], false],
    ["exits within a character", [start, "exit"], false],
    ["is killed during its answer", [start, "kill"], false],
    ["exits before the end of its answer's line", [Buffer.from(line), "exit"], false],
    ["writes an endless line", [start, "endless"], false],
  ])("%s", async (_, steps, hangs) => {
    await connectStdio(steps);
    await expectFailed(hangs);
  });
});

describe("an answer that is cut within a character, and then continues, arrives complete", () => {
  test("from an HTTP API", async () => {
    await connectApi(() => [
      headOf({ "content-type": "text/plain", "transfer-encoding": "chunked" }),
      chunkOf(TEXT_START),
      chunkOf(TEXT_END),
      LAST_CHUNK,
    ]);
    expect(await runCall()).toEqual({ status: "succeeded", told: `${PIECE} 😀 after` });
  });

  test.each(["application/json", "text/event-stream"])("over Streamable HTTP as %s", async (type) => {
    await connectMcp((id) => {
      const answer = JSON.stringify({
        jsonrpc: "2.0",
        id,
        result: { content: [{ type: "text", text: WHOLE }] },
      });
      const [start, end] = cutInHalf(type === "text/event-stream" ? `data: ${answer}\n\n` : answer);
      const head = headOf({ "content-type": type, "transfer-encoding": "chunked" });
      return [head, chunkOf(start), chunkOf(end), LAST_CHUNK];
    });
    expect(await runCall()).toEqual({ status: "succeeded", told: WHOLE });
  });

  test("over stdio", async () => {
    const result = { content: [{ type: "text", text: WHOLE }] };
    const [start, end] = cutInHalf(`${JSON.stringify({ jsonrpc: "2.0", id: Number(CALL_ID), result })}\n`);
    await connectStdio([start, end]);
    expect(await runCall()).toEqual({ status: "succeeded", told: WHOLE });
  });
});

test("an endless body is read only up to the part that is shown", async () => {
  await connectApi(() => [
    headOf({ "content-type": "text/plain", "transfer-encoding": "chunked" }),
    () => Buffer.from(chunkOf("x".repeat(MIB))).toString(),
  ]);
  const { status, told } = await runCall();
  expect(status).toBe("succeeded");
  expect(told.length).toBeLessThan(MIB);
  await expectNothingOpen();
});
