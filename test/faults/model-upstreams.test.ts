/**
 * Model providers that fail in every way, from the socket up to the task. The bytes are scripted, so no layer repairs
 * them.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verify } from "../ledger/verify/scene.ts";
import { FakeClock } from "../support/clock.ts";
import { allEvents, type ReadEvent } from "../support/events.ts";
import {
  chunkOf,
  headOf,
  LAST_CHUNK,
  type RawUpstream,
  type Step,
  startRawUpstream,
} from "../support/raw-upstream.ts";
import {
  dispatch,
  ended,
  gate,
  ledger,
  openEvents,
  type Stage,
  startStage,
  unsettled,
  until,
} from "../tasks/support.ts";

setDefaultTimeout(60_000);

const SECRET = "sk-raw-upstream-hunter22";
const TIMEOUT_MS = 20_000;
const MIB = 1024 * 1024;

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
    tiers: { 1: ["raw/x", "b"], 2: ["raw/x"] },
    prices: { "raw/x": [0, 1_000] },
    providers: {
      raw: `{ kind: openai-compatible, base_url: "${raw.url}/v1", api_key: "${SECRET}", timeout_ms: ${TIMEOUT_MS} }`,
    },
  });
  await stage.gateway.agent("plain");
  stage.upstream.script("b", { chunks: ["right"] });
});
afterAll(async () => {
  await stage.stop();
  await raw.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const STREAM = { "content-type": "text/event-stream", "transfer-encoding": "chunked" };

function data(delta: object, finish: string | null = null): string {
  const chunk = { id: "1", object: "chat.completion.chunk", created: 1, model: "x" };
  return `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
}
const said = (content: string) => data({ content });
const FINISH = `${data({}, "stop")}data: [DONE]\n\n`;
const call = { index: 0, id: "c", type: "function", function: { name: "time__now", arguments: "" } };
const WHOLE = said("wrong ") + said("half") + FINISH;

/** Splits a text in the middle of the emoji. */
function upToHalfOf(text: string, emoji: string): [Uint8Array, Uint8Array] {
  const bytes = Buffer.from(text);
  const at = bytes.indexOf(Buffer.from(emoji)) + 2;
  return [bytes.subarray(0, at), bytes.subarray(at)];
}
const [HALF, OTHER_HALF] = upToHalfOf(said("wrong 😀 more"), "😀");

interface Fault {
  readonly steps: readonly Step[];
  /** Possible reasons. Which one is reported depends on the timing of packets. */
  readonly reasons: readonly string[];
  /** Whether it never ends by itself. */
  readonly hangs?: true;
  /** Whether no part of an answer arrived, so nothing is charged. `either`: it depends on how the bytes arrive. */
  readonly free?: true | "either";
}

const BROKEN = ["connection", "cut"];
const headers = (status: string, more: object = {}) =>
  headOf({ "content-type": "application/json", "content-length": 2, ...more }, status);

const FAULTS: Readonly<Record<string, Fault>> = {
  "hangs before its headers": { steps: ["hang"], reasons: ["timeout"], hangs: true, free: true },
  "hangs within its headers": {
    steps: ["HTTP/1.1 200 OK\r\ncontent-ty", "hang"],
    reasons: ["timeout"],
    hangs: true,
    free: true,
  },
  "hangs after its headers": {
    steps: [headOf(STREAM), "hang"],
    reasons: ["timeout"],
    hangs: true,
    free: true,
  },
  "hangs after some text": {
    steps: [headOf(STREAM), chunkOf(said("wrong ")), "hang"],
    reasons: ["timeout"],
    hangs: true,
  },
  "hangs after half of a character": {
    steps: [headOf(STREAM), chunkOf(said("wrong ")), chunkOf(HALF), "hang"],
    reasons: ["timeout"],
    hangs: true,
  },
  "closes without sending anything": { steps: ["end"], reasons: ["connection"], free: true },
  "resets without sending anything": { steps: ["reset"], reasons: ["connection"], free: true },
  "closes within its headers": {
    steps: ["HTTP/1.1 200 OK\r\ncontent-ty", "end"],
    reasons: ["connection", "error"],
    free: true,
  },
  "closes after its headers": { steps: [headOf(STREAM), "end"], reasons: BROKEN, free: true },
  "resets after its headers": { steps: [headOf(STREAM), "reset"], reasons: BROKEN, free: true },
  "closes between two chunks": { steps: [headOf(STREAM), chunkOf(said("wrong ")), "end"], reasons: BROKEN },
  "resets between two chunks": { steps: [headOf(STREAM), chunkOf(said("wrong ")), "reset"], reasons: BROKEN },
  "closes within a chunk": {
    steps: [headOf(STREAM), chunkOf(said("wrong ")), "fff\r\ndata: {", "end"],
    reasons: BROKEN,
  },
  "ends its chunks within an event": {
    steps: [headOf(STREAM), chunkOf(said("wrong ")), chunkOf('data: {"choices":[{"ind'), LAST_CHUNK],
    reasons: BROKEN,
  },
  "ends its chunks within a character": {
    steps: [headOf(STREAM), chunkOf(said("wrong ")), chunkOf(HALF), LAST_CHUNK],
    reasons: BROKEN,
  },
  "ends its chunks before it has finished": {
    steps: [headOf(STREAM), chunkOf(said("wrong ")), LAST_CHUNK],
    reasons: BROKEN,
  },
  "reports its end, but not the reason": {
    steps: [headOf(STREAM), chunkOf(`${said("wrong ")}data: [DONE]\n\n`), LAST_CHUNK],
    reasons: BROKEN,
  },
  "asks for a tool and closes before it has finished": {
    steps: [headOf(STREAM), chunkOf(data({ tool_calls: [call] })), "end"],
    reasons: BROKEN,
    free: true,
  },
  "announces a longer body than it sends": {
    steps: [headOf({ "content-type": "text/event-stream", "content-length": 9_999 }), said("wrong "), "end"],
    reasons: BROKEN,
  },
  "announces a shorter body than it sends": {
    steps: [
      headOf({ "content-type": "text/event-stream", "content-length": said("wrong ").length + 20 }),
      WHOLE,
      "end",
    ],
    reasons: BROKEN,
  },
  "sends a body without a length and closes in its middle": {
    steps: [headOf({ "content-type": "text/event-stream", connection: "close" }), said("wrong "), "end"],
    reasons: BROKEN,
  },
  "sends chunks without a size": {
    steps: [headOf(STREAM), chunkOf(said("wrong ")), "zz\r\nwhat\r\n", "hang"],
    reasons: [...BROKEN, "error"],
    // If both arrive together, Bun may report the broken chunk and withhold the one before it.
    free: "either",
  },
  "does not speak HTTP": {
    steps: ["SSH-2.0-OpenSSH_9.6\r\n\r\n", "end"],
    reasons: ["connection", "error"],
    free: true,
  },
  "sends an event that is not JSON": {
    steps: [headOf(STREAM), chunkOf(`${said("wrong ")}data: {"key": "${SECRET}\n\n${FINISH}`), LAST_CHUNK],
    reasons: ["error"],
  },
  "answers with a page": {
    steps: [headOf({ "content-type": "text/html", "content-length": 6 }), "<html>"],
    reasons: BROKEN,
    free: true,
  },
  "claims that its body is compressed": {
    steps: [headOf({ ...STREAM, "content-encoding": "gzip" }), chunkOf(WHOLE), LAST_CHUNK],
    reasons: [...BROKEN, "error"],
    free: true,
  },
  "answers 500 with its key in the body": {
    steps: [headOf({ "content-length": SECRET.length }, "500 Internal Server Error"), SECRET],
    reasons: ["http_500"],
    free: true,
  },
  "answers 503 and is cut off": {
    steps: [headOf({ "content-length": 500 }, "503 Service Unavailable"), "{", "reset"],
    reasons: ["http_503"],
    free: true,
  },
  "answers 429": { steps: [headers("429 Too Many Requests"), "{}"], reasons: ["rate_limited"], free: true },
  "answers 500 and hangs": {
    steps: [headOf({ "content-length": 500 }, "500 Internal Server Error"), "{", "hang"],
    reasons: ["timeout"],
    hangs: true,
    free: true,
  },
  "sends an endless event": {
    steps: [headOf(STREAM), chunkOf(said("wrong ")), () => Buffer.from(chunkOf("x".repeat(MIB))).toString()],
    reasons: ["answer_too_large"],
  },
  "sends endless blank comments": {
    steps: [headOf(STREAM), chunkOf(said("wrong ")), chunkOf(": ping\n\n"), "hang"],
    reasons: ["timeout"],
    hangs: true,
  },
  "answers 500 with an endless body": {
    steps: [
      headOf(STREAM, "500 Internal Server Error"),
      () => Buffer.from(chunkOf("x".repeat(MIB))).toString(),
    ],
    reasons: ["http_500"],
    free: true,
  },
};
const NAMES = Object.keys(FAULTS);

async function running(): Promise<number> {
  return (await stage.gateway.call("GET", "/v1/workspace")).body.usage.tasks_running;
}

/** The text of the deltas after the last reset. */
function textOf(events: readonly ReadEvent[]): string {
  const from = events.findLastIndex(({ event }) => event === "output.reset");
  return events
    .slice(from + 1)
    .map(({ event, data }) => (event === "output.delta" ? data.text : ""))
    .join("");
}

/** Runs a task against the fault and checks what must be true of every result. */
async function runInto({ steps, hangs }: Fault, tier: number) {
  const before = raw.requests.length;
  raw.script(() => steps);
  const id = await dispatch(stage.gateway, { agent: "plain", tier });
  const reading = openEvents(stage.gateway, id).then(allEvents);
  await until(() => raw.requests.length > before);
  const timer = hangs ? setInterval(() => clock.advance(TIMEOUT_MS / 4), 15) : undefined;
  const events = await reading.finally(() => clearInterval(timer));
  const task = await ended(stage.gateway, id);
  expect(events.at(-1)).toMatchObject({ event: "task.finished", data: task });
  for (const { event, data } of events) {
    if (event === "output.delta") expect(data.text).not.toContain("\ufffd");
  }
  const shown = JSON.stringify([events, task]);
  expect(shown).not.toContain(SECRET);
  const entries = (await ledger(stage.gateway)).filter((entry) => entry.task === id);
  expect(unsettled(entries)).toEqual([]);
  const outcome = entries.find((entry) => entry.action === "model.call" && entry.phase === "outcome");
  expect(await running()).toBe(0);
  // The connection is released even if the provider keeps it open.
  await until(() => raw.answering === 0);
  return { task, events, outcome, asked: raw.requests.length - before };
}

test("a complete answer succeeds and is charged, wherever its characters are cut", async () => {
  const head = headOf({ ...STREAM, connection: "close" });
  raw.script(() => [head, chunkOf(HALF), chunkOf(OTHER_HALF), chunkOf(FINISH), LAST_CHUNK, "end"]);
  const task = await ended(stage.gateway, await dispatch(stage.gateway, { agent: "plain", tier: 2 }));
  expect(task).toMatchObject({ status: "succeeded", output: "wrong 😀 more", model: "raw/x" });
  expect(task.credits_consumed).toBeGreaterThan(0);
  // The upstream is about to close this connection. A call that reused it would be lost, as with any server.
  await until(() => raw.answering === 0);
});

test("a provider that closes a kept connection during a request is a failed connection: the next model answers", async () => {
  const end = gate();
  const whole = Buffer.concat([Buffer.from(headOf(STREAM)), chunkOf(WHOLE), Buffer.from(LAST_CHUNK)]);
  raw.script(() => [whole, end.opened, "end"]);
  const first = await ended(stage.gateway, await dispatch(stage.gateway, { agent: "plain", tier: 2 }));
  expect(first).toMatchObject({ status: "succeeded", model: "raw/x" });
  const [requests, early] = [raw.requests.length, raw.early];
  const id = await dispatch(stage.gateway, { agent: "plain", tier: 1 });
  const reading = openEvents(stage.gateway, id).then(allEvents);
  await until(() => raw.early > early);
  end.open();
  const events = await reading;
  const fallback = events.find(({ event }) => event === "model.fallback");
  expect(fallback?.data).toMatchObject({ from: "raw/x", to: "up/b", reason: "connection" });
  expect(textOf(events)).toBe("right");
  expect(raw.requests.length).toBe(requests);
});

describe("the next model answers if the first", () => {
  test.each(NAMES)("%s", async (name) => {
    const fault = FAULTS[name] as Fault;
    const { task, events, outcome } = await runInto(fault, 1);
    expect(task).toMatchObject({ status: "succeeded", output: "right", model: "up/b", error: null });
    expect(textOf(events)).toBe("right");
    const fallback = events.find(({ event }) => event === "model.fallback");
    expect(fallback?.data).toMatchObject({ from: "raw/x", to: "up/b" });
    expect(fault.reasons).toContain(fallback?.data.reason);
    expect(outcome).toMatchObject({ outcome: "failed", code: fallback?.data.reason });
    // Whatever a failed attempt produced is charged.
    if (fault.free === true) expect(task.credits_consumed).toBe(0);
    else if (fault.free === undefined) expect(task.credits_consumed).toBeGreaterThan(0);
  });
});

describe("the task fails without an output if the only model", () => {
  test.each(NAMES)("%s", async (name) => {
    const fault = FAULTS[name] as Fault;
    const { task, asked } = await runInto(fault, 2);
    const code = fault.reasons[0] === "timeout" ? "timeout" : "model_unavailable";
    expect(task).toMatchObject({ status: "failed", output: null, error: { code }, tools_called: [] });
    expect(asked).toBe(1);
  });
});

test("a provider that sends an endless event is disconnected after part of it", async () => {
  const before = raw.sent;
  await runInto(FAULTS["sends an endless event"] as Fault, 1);
  expect(raw.sent - before).toBeLessThan(64 * MIB);
});

test("a cancel while the provider hangs ends the task and closes the connection", async () => {
  raw.script(() => [headOf(STREAM), chunkOf(said("wrong ")), "hang"]);
  const id = await dispatch(stage.gateway, { agent: "plain", tier: 2 });
  const reading = openEvents(stage.gateway, id).then(allEvents);
  await until(() => raw.answering === 1);
  await stage.gateway.call("POST", `/v1/tasks/${id}/cancel`);
  expect((await reading).at(-1)?.data).toMatchObject({ status: "cancelled" });
  await until(() => raw.answering === 0);
});

test("after all of this the ledger verifies, and no part of the key has been logged", async () => {
  expect(unsettled(await ledger(stage.gateway))).toEqual([]);
  expect(logged.length).toBeGreaterThan(0);
  expect(logged.join("\n")).not.toContain(SECRET);
  expect((await verify(join(dataDir, "gatehouse.db"))).verdict).toBe("holds");
});
