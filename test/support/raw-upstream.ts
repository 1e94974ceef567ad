/**
 * A scripted upstream on plain TCP. It sends raw bytes, so it can break every rule of HTTP. Each request is answered
 * with a script's steps. Tests can inspect the requests and the open connections.
 */
import { createServer, type Socket } from "node:net";

/**
 * Bytes to send, each in a separate write; a promise to wait for; or an action on the connection. `end` closes it
 * after what was sent (FIN). If that was a complete answer, the answer MUST contain `connection: close`; otherwise
 * the client may send its next request on the connection while it ends, and that request is never read. `reset`
 * breaks the connection (RST). `hang` sends nothing more. Without one of these three, the connection stays open for
 * the next request. A function is called repeatedly for more bytes until the connection is gone.
 */
export type Step = string | Uint8Array | Promise<unknown> | (() => string) | "end" | "reset" | "hang";

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  /** The lines before the body, as received. */
  readonly head: string;
  readonly body: string;
}

export type RawScript = (request: RawRequest, index: number) => readonly Step[];

export interface RawUpstream {
  /** The address without a path. */
  readonly url: string;
  /** Every complete request, oldest first. */
  readonly requests: readonly RawRequest[];
  /**
   * How often bytes arrived on a connection in the middle of an answer. They are not read if the answer ends the
   * connection.
   */
  readonly early: number;
  /** Connections that are open in the middle of an answer, without those waiting for a next request. */
  readonly answering: number;
  /** Bytes handed over for sending. */
  readonly sent: number;
  /** Sets the answers to requests from now on, and restarts their count at 0. */
  script(script: RawScript): void;
  close(): Promise<void>;
}

/** Pause between two writes, so that they are not sent as one. */
const APART_MS = 3;
/** Pause before a reset or an end, because a reset discards what the reader has not yet taken from its socket. */
const TAKEN_MS = 50;
/** The most bytes from a function that may wait to be sent, so that a reader that stops reading is noticed. */
const MOST_WAITING = 1024 * 1024;

export async function startRawUpstream(initial: RawScript = () => ["end"]): Promise<RawUpstream> {
  const requests: RawRequest[] = [];
  const sockets = new Set<Socket>();
  const busy = new WeakSet<Socket>();
  let script = initial;
  let index = 0;
  let sent = 0;
  let early = 0;

  async function write(socket: Socket, bytes: string | Uint8Array): Promise<void> {
    if (socket.destroyed) return;
    sent += Buffer.byteLength(bytes);
    socket.write(bytes);
    while (socket.writableLength > MOST_WAITING && !socket.destroyed) await Bun.sleep(1);
  }

  /** @returns whether the connection can be used for another request */
  async function play(socket: Socket, steps: readonly Step[]): Promise<boolean> {
    for (const [place, step] of steps.entries()) {
      if (socket.destroyed || step === "hang") return false;
      if (step === "end") {
        socket.end();
        return false;
      }
      if (step === "reset") {
        socket.resetAndDestroy();
        return false;
      }
      if (step instanceof Promise) await step;
      else if (typeof step === "function") {
        while (!socket.destroyed) await write(socket, step());
      } else {
        await write(socket, step);
        const next = steps[place + 1];
        await Bun.sleep(next === "reset" || next === "end" ? TAKEN_MS : APART_MS);
      }
    }
    return true;
  }

  const server = createServer({ allowHalfOpen: false }, (socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => sockets.delete(socket));
    // The tests are about peers that break the connection.
    socket.on("error", () => socket.destroy());
    let received: Buffer = Buffer.alloc(0);
    socket.on("data", async (data) => {
      received = Buffer.concat([received, typeof data === "string" ? Buffer.from(data) : data]);
      if (busy.has(socket)) {
        early += 1;
        return;
      }
      busy.add(socket);
      for (let next = takeRequest(received); next !== undefined; next = takeRequest(received)) {
        received = received.subarray(next.length);
        requests.push(next.request);
        if (!(await play(socket, script(next.request, index++)))) return;
      }
      busy.delete(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("it listens on no port");

  return {
    url: `http://127.0.0.1:${address.port}`,
    requests,
    get early() {
      return early;
    },
    get answering() {
      return [...sockets].filter((socket) => busy.has(socket)).length;
    },
    get sent() {
      return sent;
    },
    script(next) {
      script = next;
      index = 0;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** The first request in these bytes, once it is complete. Its body MUST have a Content-Length. */
function takeRequest(bytes: Buffer): { readonly request: RawRequest; readonly length: number } | undefined {
  const end = bytes.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = bytes.subarray(0, end).toString("latin1");
  const length = end + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
  if (bytes.length < length) return undefined;
  const [method = "", path = ""] = head.split(" ");
  return { request: { method, path, head, body: bytes.subarray(end + 4, length).toString() }, length };
}

const encoder = new TextEncoder();

/** The status line and these headers. */
export function headOf(headers: Readonly<Record<string, string | number>>, status = "200 OK"): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status}\r\n${lines.join("")}\r\n`;
}

/** One complete chunk of a chunked body (RFC 9112, section 7.1). */
export function chunkOf(data: string | Uint8Array): Uint8Array {
  const bytes = typeof data === "string" ? encoder.encode(data) : data;
  return Buffer.concat([encoder.encode(`${bytes.length.toString(16)}\r\n`), bytes, encoder.encode("\r\n")]);
}

export const LAST_CHUNK = "0\r\n\r\n";
