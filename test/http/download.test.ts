import { afterAll, expect, test } from "bun:test";
import { connect } from "node:net";
import type { Server } from "bun";
import { systemClock } from "../../src/base/clock.ts";
import { downloadStream, OpenDownloads } from "../../src/http/answer/download.ts";
import { FakeClock } from "../support/clock.ts";

const CHUNK = new Uint8Array(64 * 1024);
const MINUTES_5 = 5 * 60_000;
const servers: Server<unknown>[] = [];
afterAll(async () => {
  for (const server of servers) await server.stop(true);
});

/** Endless chunks, or chunks until one fails, with a record of what happened to them. */
function source({ failsAt = Number.POSITIVE_INFINITY }: { readonly failsAt?: number } = {}) {
  const seen = { made: 0, returned: 0, ended: 0, stopped: 0, failures: [] as unknown[] };
  async function* chunks(): AsyncGenerator<Uint8Array, void> {
    try {
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        if (seen.made === failsAt) throw new Error("the store cannot be read");
        seen.made += 1;
        yield CHUNK;
      }
    } finally {
      seen.returned += 1;
    }
  }
  const parts = {
    stop: () => {
      seen.stopped += 1;
    },
    failed: (error: unknown) => void seen.failures.push(error),
    ended: () => {
      seen.ended += 1;
    },
  };
  return { seen, chunks, parts };
}

const never = () => new AbortController().signal;
/** Runs everything that is due without a clock. */
const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
};

test("two downloads per workspace and eight per node run at once; each frees its slot once", () => {
  const open = new OpenDownloads();
  const first = open.take(1, "1a");
  open.take(1, "1b");
  expect(() => open.take(1, "1c")).toThrow("The workspace already has 2 exports in progress.");
  for (const [workspace, owner] of ["a", "b"].flatMap((owner) => [2, 3, 4].map((id) => [id, owner] as const)))
    open.take(workspace, `${workspace}${owner}`);
  expect(() => open.take(5, "5a")).toThrow("cannot run more");
  first();
  first();
  open.take(5, "5a");
  expect(() => open.take(1, "1d")).toThrow("cannot run more");
});

test("unread data is not produced: one chunk waits, and the download is abandoned after five minutes", async () => {
  const clock = new FakeClock();
  const { seen, chunks, parts } = source();
  const reader = downloadStream(chunks(), { ...parts, clock, signal: never() }).getReader();
  await settle();
  expect(seen.made).toBe(1);
  clock.advance(MINUTES_5 - 1);
  expect((await reader.read()).value).toEqual(CHUNK);
  await settle();
  expect(seen).toMatchObject({ made: 2, returned: 0 });
  // Taking something restarts the five minutes.
  clock.advance(MINUTES_5 - 1);
  expect(seen.failures).toEqual([]);
  clock.advance(1);
  await settle();
  expect(seen).toMatchObject({ made: 2, returned: 1, ended: 1, failures: [{ name: "StalledReader" }] });
  await expect(reader.read()).rejects.toThrow("read nothing");
});

test("the slot is freed, and the connection left to others, before the end is seen", async () => {
  const { seen, parts } = source();
  async function* two(): AsyncGenerator<Uint8Array, void> {
    yield CHUNK;
    yield CHUNK;
  }
  const reader = downloadStream(two(), { ...parts, clock: new FakeClock(), signal: never() }).getReader();
  for (let chunk = 0; chunk < 2; chunk++) expect((await reader.read()).done).toBe(false);
  expect(seen.ended).toBe(0);
  expect((await reader.read()).done).toBe(true);
  expect(seen).toMatchObject({ ended: 1, failures: [] });
});

test("a reader that leaves, or a client that had already left, ends the download without a failure", async () => {
  const left = source();
  const reader = downloadStream(left.chunks(), {
    ...left.parts,
    clock: new FakeClock(),
    signal: never(),
  }).getReader();
  await reader.read();
  await settle();
  await reader.cancel();
  const control = new AbortController();
  const gone = source();
  const stream = downloadStream(gone.chunks(), {
    ...gone.parts,
    clock: new FakeClock(),
    signal: control.signal,
  });
  await settle();
  control.abort();
  const early = source();
  downloadStream(early.chunks(), { ...early.parts, clock: new FakeClock(), signal: AbortSignal.abort() });
  await settle();
  expect(left.seen).toMatchObject({ made: 2, returned: 1, ended: 1, failures: [] });
  expect(gone.seen).toMatchObject({ made: 1, returned: 1, ended: 1, failures: [] });
  expect(early.seen).toMatchObject({ made: 0, ended: 1, failures: [] });
  await expect(stream.getReader().read()).rejects.toThrow();
});

/** A separate server that answers with one download, and a raw TCP client that reads when it is told to. */
function overTcp(download: ReturnType<typeof source>) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    development: false,
    fetch(request, serving) {
      serving.timeout(request, 0);
      return new Response(
        downloadStream(download.chunks(), { ...download.parts, clock: systemClock, signal: request.signal }),
      );
    },
  });
  servers.push(server);
  const socket = connect({ host: "127.0.0.1", port: server.port ?? 0 });
  const received: Buffer[] = [];
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()).on("error", () => {}));
  socket.on("data", (data) => void received.push(Buffer.from(data)));
  const opened = new Promise<void>((resolve) => socket.once("data", () => resolve()));
  socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  return { socket, opened, closed, received: () => Buffer.concat(received).toString("latin1") };
}

/**
 * Resolves once nothing more is produced for a while. How much a connection takes ahead of its reader depends on the
 * system.
 */
async function untilStill(made: () => number): Promise<number> {
  for (let before = -1; before !== made(); await Bun.sleep(150)) before = made();
  return made();
}

test("over TCP: a client that reads nothing gets what the connection buffers, and no more is produced", async () => {
  const download = source();
  const { socket, opened, closed } = overTcp(download);
  await opened;
  socket.pause();
  const made = await untilStill(() => download.seen.made);
  expect(made).toBeLessThan(1_000);
  socket.resume();
  while (download.seen.made < made * 3) await Bun.sleep(5);
  socket.destroy();
  await closed;
  while (download.seen.ended === 0) await Bun.sleep(5);
  const { made: last } = download.seen;
  await settle();
  expect(download.seen).toMatchObject({ made: last, returned: 1, ended: 1, failures: [] });
});

test("over TCP: a failure midway ends without the body's end marker, so the client notices", async () => {
  const download = source({ failsAt: 20 });
  const { opened, closed, received } = overTcp(download);
  await opened;
  await closed;
  expect(received()).toStartWith("HTTP/1.1 200");
  expect(received()).not.toEndWith("\r\n0\r\n\r\n");
  expect(download.seen).toMatchObject({
    made: 20,
    ended: 1,
    failures: [{ message: "the store cannot be read" }],
  });
});

test("over TCP: a failure before the first chunk is not an empty answer either", async () => {
  const download = source({ failsAt: 0 });
  const { closed, received } = overTcp(download);
  await closed;
  expect(received()).not.toContain("\r\n0\r\n\r\n");
  expect(received()).not.toMatch(/content-length: 0/i);
  expect(download.seen).toMatchObject({
    made: 0,
    ended: 1,
    failures: [{ message: "the store cannot be read" }],
  });
});

test.each(["cancelled", "left", "given up"])(
  "a download that is %s stops chunks that have nothing to yield, and frees its slot",
  async (how) => {
    const clock = new FakeClock();
    const leaving = new AbortController();
    const stopped = new AbortController();
    const ended = Promise.withResolvers<void>();
    async function* quiet(): AsyncGenerator<Uint8Array, void> {
      yield CHUNK;
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        stopped.signal.throwIfAborted();
      }
    }
    const reader = downloadStream(quiet(), {
      clock,
      signal: leaving.signal,
      stop: () => stopped.abort(),
      failed: () => {},
      ended: ended.resolve,
    }).getReader();
    if (how === "given up") {
      await settle();
      clock.advance(MINUTES_5);
    } else {
      await reader.read();
      await settle();
      if (how === "left") leaving.abort();
      else void reader.cancel();
    }
    await ended.promise;
    expect(stopped.signal.aborted).toBe(true);
    await reader.closed.catch(() => {});
  },
);
