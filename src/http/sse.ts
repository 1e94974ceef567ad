import { Stream } from "@elysiajs/stream";
import { type Clock, every } from "../base/clock.ts";
import type { EventReader } from "../tasks/events.ts";
import { blocksOf } from "../tasks/frames.ts";

const encoder = new TextEncoder();
/** Bun sends the headers with the body's first byte: a quiet stream would look unopened without this. */
const OPENED = encoder.encode(": open\n\n");
const KEEP_ALIVE = encoder.encode(": keep-alive\n\n");
const KEEP_ALIVE_MS = 10_000;
/** Bytes handed to one connection and not taken yet, after which no more are: with the block on its way twice that at most. */
const BACKLOG_BYTES = 64 * 1024;
const BACKLOG_WAIT_MS = 25;
/** A reader that has taken nothing of its backlog for so long is ended. It may come again, from Last-Event-ID. */
const STALL_MS = 5 * 60_000;

/**
 * A stream of server-sent events. The reader's frames are passed on as they are; a client that leaves ends the reading.
 * `expire` ends the connection of a client that takes nothing; `ended` is called once the stream is over.
 */
export function eventStream(
  reader: EventReader,
  signal: AbortSignal,
  headers: Record<string, string>,
  clock: Clock,
  { expire, ended }: { readonly expire: () => void; readonly ended: () => void },
): Response {
  const given = new Given();
  const stream: Stream<Uint8Array> = new Stream<Uint8Array>(
    frames(reader, signal, {
      drained(bytes) {
        given.add(bytes);
        return drained(() => given.held(backlog(stream)), signal, clock);
      },
      breakOff: expire,
      ended,
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

/** The sizes of the last chunks that were given to a connection, which tells how many of them it holds, and not how large. */
class Given {
  readonly #sizes: number[] = [];

  add(bytes: number): void {
    this.#sizes.push(bytes);
  }

  /** Bytes of the last so many chunks. */
  held(chunks: number): number {
    this.#sizes.splice(0, this.#sizes.length - chunks);
    return this.#sizes.reduce((bytes, size) => bytes + size, 0);
  }
}

interface Connection {
  /** Waits while the client has much to take yet, after it was given so many bytes. False: it takes nothing any more. */
  drained(bytes: number): Promise<boolean>;
  /** Ends the connection with what it has not taken. */
  breakOff(): void;
  ended(): void;
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
        // A slow client takes what it was given first, before more is read for it: what comes meanwhile waits in the
        // task's log, which all share, or in the store.
        if (!(await connection.drained(bytes.length))) return connection.breakOff();
      }
    }
  } catch {
    // The library leaves a stream that fails open for ever. One that ends is taken up again, from Last-Event-ID.
  } finally {
    endKeepAlive();
    reader.close();
    signal.removeEventListener("abort", leave);
    connection.ended();
  }
}

/** True once little enough is left, or the client has gone. */
async function drained(held: () => number, signal: AbortSignal, clock: Clock): Promise<boolean> {
  let least = held();
  let since = clock.monotonic();
  for (let now = least; now > BACKLOG_BYTES && !signal.aborted; now = held()) {
    if (now < least) {
      least = now;
      since = clock.monotonic();
    }
    if (clock.monotonic() - since >= STALL_MS) return false;
    await new Promise<void>((resolve) => clock.after(BACKLOG_WAIT_MS, resolve));
  }
  return true;
}

/**
 * Chunks that the connection has not taken yet. The library does not show how full its queue is, and pushes without
 * asking; its controller, private in its types alone, knows.
 */
function backlog(stream: Stream<Uint8Array>): number {
  const controller: ReadableStreamDefaultController | undefined = Reflect.get(stream, "controller");
  return controller?.desiredSize == null ? 0 : 1 - controller.desiredSize;
}
