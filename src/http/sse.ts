import { Stream } from "@elysiajs/stream";
import { type Clock, every } from "../base/clock.ts";
import type { EventReader } from "../tasks/events.ts";
import { blocksOf } from "../tasks/frames.ts";

const encoder = new TextEncoder();
/** Bun sends the headers with the body's first byte: a quiet stream would look unopened without this. */
const OPENED = encoder.encode(": open\n\n");
const KEEP_ALIVE = encoder.encode(": keep-alive\n\n");
const KEEP_ALIVE_MS = 10_000;
/** Blocks (64 KiB at most) handed to one connection and not taken yet. */
const BACKLOG_LIMIT = 4;
const BACKLOG_WAIT_MS = 25;

/** A stream of server-sent events. The reader's frames are passed on as they are; a client that leaves ends the reading. */
export function eventStream(
  reader: EventReader,
  signal: AbortSignal,
  headers: Record<string, string>,
  clock: Clock,
): Response {
  const stream: Stream<Uint8Array> = new Stream<Uint8Array>(
    frames(reader, signal, {
      full: () => backlog(stream) > BACKLOG_LIMIT,
      drained: () => new Promise<void>((resolve) => clock.after(BACKLOG_WAIT_MS, resolve)),
      keepAlive: () =>
        every(clock, KEEP_ALIVE_MS, () => {
          if (!signal.aborted && backlog(stream) === 0) stream.send(KEEP_ALIVE);
        }),
    }),
  );
  return new Response(stream.value, {
    headers: {
      ...headers,
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    },
  });
}

interface Connection {
  full(): boolean;
  drained(): Promise<void>;
  /** Starts the keep-alive; the returned function ends it. */
  keepAlive(): () => void;
}

async function* frames(
  reader: EventReader,
  signal: AbortSignal,
  connection: Connection,
): AsyncGenerator<Uint8Array, void> {
  const leave = () => reader.close();
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  const endKeepAlive = connection.keepAlive();
  try {
    yield OPENED;
    for (let next = await reader.next(); next !== null; next = await reader.next()) {
      for (const { bytes } of blocksOf(next)) {
        yield bytes;
        // A slow client takes what it was given first; what comes meanwhile waits in the task's log, which all share.
        while (connection.full() && !signal.aborted) await connection.drained();
      }
    }
  } catch {
    // The library leaves a stream that fails open for ever. One that ends is taken up again, from Last-Event-ID.
  } finally {
    endKeepAlive();
    reader.close();
    signal.removeEventListener("abort", leave);
  }
}

/**
 * Chunks that the connection has not taken yet. The library does not show how full its queue is, and pushes without
 * asking; its controller, private in its types alone, knows.
 */
function backlog(stream: Stream<Uint8Array>): number {
  const controller: ReadableStreamDefaultController | undefined = Reflect.get(stream, "controller");
  return controller?.desiredSize == null ? 0 : 1 - controller.desiredSize;
}
