import { connect, type Socket } from "node:net";
import type { TestGateway } from "../support/gateway.ts";

/** A raw TCP client. It sees the bytes as they arrive, and reads only while it is allowed to. */
export interface RawClient {
  readonly socket: Socket;
  /** The status line and headers, once complete. */
  head(): Promise<string>;
  /** The body so far, without its chunk framing. */
  body(): string;
  /** Resolves when the body contains this text. */
  saw(text: string): Promise<void>;
  /** Resolves when the server has ended the body or closed the connection. */
  ended(): Promise<void>;
}

export function rawRequest(
  gateway: TestGateway,
  request: {
    readonly method?: string;
    readonly path: string;
    readonly headers?: string[];
    readonly body?: string;
  },
): RawClient {
  const { hostname, port } = new URL(gateway.url);
  const { method = "GET", path, headers = [], body = "" } = request;
  const socket = connect({ host: hostname, port: Number(port) });
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${hostname}:${port}`,
    `Authorization: Bearer ${gateway.admin}`,
    ...headers,
    ...(body === "" ? [] : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`]),
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
  const pieces: Buffer[] = [];
  let closed = false;
  let waiting: (() => void)[] = [];
  const wake = () => {
    const now = waiting;
    waiting = [];
    for (const each of now) each();
  };
  socket.on("data", (data) => {
    pieces.push(Buffer.from(data));
    wake();
  });
  const end = () => {
    closed = true;
    wake();
  };
  socket.on("close", end).on("error", end);

  const bytes = () => Buffer.concat(pieces);
  async function when<T>(look: () => T | undefined): Promise<T> {
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (closed) throw new Error("the connection has ended");
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
  }
  const body0 = () => {
    const all = bytes();
    const start = all.indexOf("\r\n\r\n");
    if (start < 0) return { text: "", whole: false };
    const rest = all.subarray(start + 4);
    // An answer that ended before its first byte was sent carries its length.
    const length = /^content-length: (\d+)$/im.exec(all.subarray(0, start).toString("latin1"))?.[1];
    return length === undefined
      ? unchunk(rest)
      : { text: rest.toString(), whole: rest.length >= Number(length) };
  };
  return {
    socket,
    head: () =>
      when(() => {
        const all = bytes();
        const end = all.indexOf("\r\n\r\n");
        return end < 0 ? undefined : all.subarray(0, end).toString("latin1");
      }),
    body: () => body0().text,
    saw: (text) => when(() => (body0().text.includes(text) ? true : undefined)).then(() => {}),
    ended: () => when(() => (body0().whole || closed ? true : undefined)).then(() => {}),
  };
}

/** Decodes chunks (RFC 9112, section 7.1). */
function unchunk(bytes: Buffer): { text: string; whole: boolean } {
  const pieces: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = bytes.indexOf("\r\n", at);
    if (line < 0) return { text: Buffer.concat(pieces).toString(), whole: false };
    const size = Number.parseInt(bytes.subarray(at, line).toString("latin1"), 16);
    if (size === 0) return { text: Buffer.concat(pieces).toString(), whole: true };
    pieces.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
    if (at > bytes.length) return { text: Buffer.concat(pieces).toString(), whole: false };
  }
}
