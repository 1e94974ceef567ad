import { expect, test } from "bun:test";
import { FairPlaces } from "../../src/limits/fair-places.ts";
import { SseTransport } from "../../src/mcp/sse-transport.ts";
import { FakeClock } from "../support/clock.ts";

const MIB = 1024 * 1024;
const ENDPOINT = "http://127.0.0.1:8420/mcp/sse?sessionId=1";
const MESSAGE = { jsonrpc: "2.0", method: "notifications/x" } as const;
const decoder = new TextDecoder();

function open() {
  const clock = new FakeClock();
  const places = new FairPlaces({ perHolder: 64 * MIB, total: 64 * MIB, refused: () => new Error("full") });
  const transport = new SseTransport("1", ENDPOINT, clock, (bytes) => places.take(1, bytes, true));
  let closed = 0;
  transport.onclose = () => {
    closed += 1;
  };
  const reader = transport.response.body?.getReader();
  if (!reader) throw new Error("a stream has a body");
  const next = async () => decoder.decode((await reader.read()).value);
  return { clock, transport, places, reader, next, closed: () => closed };
}

test("anything but a message is refused, and reaches nobody", () => {
  const { transport } = open();
  const heard: unknown[] = [];
  transport.onmessage = (message) => void heard.push(message);
  for (const body of [null, 1, "x", [], {}, { jsonrpc: "1.0", id: 1, method: "ping" }, { jsonrpc: "2.0" }]) {
    expect(() => transport.receive(body, {})).toThrow();
  }
  expect(heard).toEqual([]);
  transport.receive(MESSAGE, {});
  expect(heard).toEqual([MESSAGE]);
});

test("the endpoint comes first, as an absolute URL, then messages, with comments in between", async () => {
  const { clock, transport, next } = open();
  expect(await next()).toBe(`event: endpoint\ndata: ${ENDPOINT}\n\n`);
  await transport.send(MESSAGE);
  expect(await next()).toBe(`event: message\ndata: ${JSON.stringify(MESSAGE)}\n\n`);
  clock.advance(10_000);
  expect(await next()).toBe(": keep-alive\n\n");
});

test("a client that leaves ends it once, with its timer; nothing more can be sent", async () => {
  const { clock, transport, reader, closed } = open();
  await reader.cancel();
  expect(closed()).toBe(1);
  await transport.close();
  clock.advance(60_000);
  expect(closed()).toBe(1);
  await expect(transport.send(MESSAGE)).rejects.toThrow("disconnected");
});

test("when the server ends it, the stream closes after everything that was sent", async () => {
  const { transport, reader, next, closed } = open();
  await next();
  await transport.send(MESSAGE);
  await transport.close();
  expect(await next()).toContain("notifications/x");
  expect((await reader.read()).done).toBe(true);
  expect(closed()).toBe(1);
});

test("long messages count as long answers until they are read, and are complete", async () => {
  const { transport, places, next, closed } = open();
  await next();
  const large = { ...MESSAGE, params: { text: "x".repeat(MIB) } };
  await transport.send(large);
  await transport.send(MESSAGE);
  expect(places.taken).toBeGreaterThan(MIB);
  let text = "";
  while (!text.endsWith("\n\n")) text += await next();
  expect(text).toBe(`event: message\ndata: ${JSON.stringify(large)}\n\n`);
  expect(places.taken).toBe(0);
  expect(await next()).toContain(JSON.stringify(MESSAGE));
  await transport.send(large);
  // Newer answers of the workspace need all of the memory.
  places.take(1, 64 * MIB, true);
  expect(closed()).toBe(1);
  expect(places.taken).toBe(64 * MIB);
  await expect(transport.send(MESSAGE)).rejects.toThrow("disconnected");
});

test("a client that reads nothing is disconnected once 32 MiB are queued", async () => {
  const { transport, closed } = open();
  const large = { ...MESSAGE, params: { text: "x".repeat(8 * 1024 * 1024) } };
  for (let sent = 0; sent < 4; sent++) await transport.send(large);
  expect(closed()).toBe(1);
  await expect(transport.send(MESSAGE)).rejects.toThrow("disconnected");
});
