/**
 * A scripted upstream of bare TCP: what it sends is bytes, so that it can break every rule of HTTP. Each request is answered
 * with the steps that a script gives; what was asked, and the connections that are open, can be seen.
 */
import { createServer, type Socket } from "node:net";

/**
 * Bytes to send, each in a write of its own; a promise to wait for; or what is done to the connection: `end` closes it
 * after what was sent (FIN); behind a whole answer, that answer MUST say `connection: close`, or the client may send its next
 * request on the connection while it ends, where it is never read. `reset` breaks it (RST), `hang` sends nothing more. Without one of these three the connection
 * stays open for the next request. A function is called again and again for more bytes, until the connection is gone.
 */
export type Step = string | Uint8Array | Promise<unknown> | (() => string) | "end" | "reset" | "hang";

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  /** The lines before the body, as they came. */
  readonly head: string;
  readonly body: string;
}

export type RawScript = (request: RawRequest, index: number) => readonly Step[];

export interface RawUpstream {
  /** Without a path. */
  readonly url: string;
  /** Every request that came whole, oldest first. */
  readonly requests: readonly RawRequest[];
  /** Times that bytes came on a connection in the middle of an answer. They are not read if the answer ends the connection. */
  readonly early: number;
  /** Connections that are open in the middle of an answer; those that wait for a next request do not count. */
  readonly answering: number;
  /** Bytes that were handed over to be sent. */
  readonly sent: number;
  /** Sets how requests are answered from now on, and counts them from 0 again. */
  script(script: RawScript): void;
  close(): Promise<void>;
}

/** Between two writes: they shall not leave as one. */
const APART_MS = 3;
/** Before a reset or an end: a reset throws away what the reader has not taken from its socket yet. */
const TAKEN_MS = 50;
/** Of the many bytes of a function, so that a reader that stops reading is noticed. */
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

  /** @returns whether the connection can be asked again */
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
    // A peer that breaks the connection is what the tests are about.
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

/** The first request of these bytes, once it is there whole. Its body MUST come with its length. */
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

/** One chunk of a chunked body (RFC 9112, section 7.1), whole. */
export function chunkOf(data: string | Uint8Array): Uint8Array {
  const bytes = typeof data === "string" ? encoder.encode(data) : data;
  return Buffer.concat([encoder.encode(`${bytes.length.toString(16)}\r\n`), bytes, encoder.encode("\r\n")]);
}

export const LAST_CHUNK = "0\r\n\r\n";
