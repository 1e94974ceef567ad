import { Stream } from "@elysiajs/stream";
import { type Clock, every } from "../../base/clock.ts";
import { blocksOf } from "../../tasks/events/frames.ts";
import type { EventReader } from "../../tasks/events/hub.ts";

const encoder = new TextEncoder();
/** Bun sends the headers with the first byte of the body. Without this, a quiet stream would look unopened. */
const OPENED = encoder.encode(": open\n\n");
const KEEP_ALIVE = encoder.encode(": keep-alive\n\n");
const KEEP_ALIVE_MS = 10_000;
/**
 * No more is sent while a connection has this many unread bytes. Including the block being sent, it holds at most
 * twice as many.
 */
const BACKLOG_BYTES = 64 * 1024;
const BACKLOG_WAIT_MS = 25;
/** A reader that has read nothing of its backlog for this long is ended. It may reconnect with Last-Event-ID. */
const STALL_MS = 5 * 60_000;

/**
 * A stream of server-sent events. Frames are passed on unchanged. Reading ends when the client leaves. `expire` ends
 * the connection of a client that does not read; `ended` is called once the stream is over.
 */
export function eventStream(
  reader: EventReader,
  signal: AbortSignal,
  headers: Record<string, string>,
  clock: Clock,
  { expire, ended }: { readonly expire: () => void; readonly ended: () => void },
): Response {
  const given = new DeliveredChunks();
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

/** Sizes of the last chunks given to a connection, which reports how many it holds but not how large they are. */
class DeliveredChunks {
  readonly #sizes: number[] = [];

  add(bytes: number): void {
    this.#sizes.push(bytes);
  }

  /** Total bytes of the last `chunks` chunks. */
  held(chunks: number): number {
    this.#sizes.splice(0, this.#sizes.length - chunks);
    return this.#sizes.reduce((bytes, size) => bytes + size, 0);
  }
}

interface SseConnection {
  /**
   * Waits while the client, which was just given this many bytes, still has much to read. False if it has stopped
   * reading.
   */
  drained(bytes: number): Promise<boolean>;
  /** Ends the connection, discarding what the client has not read. */
  breakOff(): void;
  ended(): void;
  /** Starts the keep-alive. The returned function stops it. */
  keepAlive(): () => void;
}

async function* frames(
  reader: EventReader,
  signal: AbortSignal,
  connection: SseConnection,
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
        // A slow client must catch up before more is read for it. Until then, events wait in the task's log, which
        // all readers share, or in the store.
        if (!(await connection.drained(bytes.length))) return connection.breakOff();
      }
    }
  } catch {
    // The library leaves a failed stream open forever. A stream that ends is resumed with Last-Event-ID.
  } finally {
    endKeepAlive();
    reader.close();
    signal.removeEventListener("abort", leave);
    connection.ended();
  }
}

/** True once little enough is left to read, or the client has left. */
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
 * The number of chunks that the connection has not taken yet. The library does not expose how full its queue is, and
 * pushes without checking. Its controller knows, but the types declare that as private.
 */
function backlog(stream: Stream<Uint8Array>): number {
  const controller: ReadableStreamDefaultController | undefined = Reflect.get(stream, "controller");
  return controller?.desiredSize == null ? 0 : 1 - controller.desiredSize;
}
