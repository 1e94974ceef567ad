import { connect } from "node:net";
import type { TestGateway } from "./gateway.ts";

export interface LateAnswer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  readonly body: any;
}

export interface LateRequest {
  readonly method?: string;
  readonly path: string;
  /** A token's secret; null sends no `Authorization` header. */
  readonly token: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Sends a request's head and the first byte of its body. `finish` sends the rest. */
export function sendHead(
  { url }: Pick<TestGateway, "url">,
  { method = "POST", path, token, headers = {}, body }: LateRequest,
): { finish(): Promise<LateAnswer> } {
  const { hostname, port } = new URL(url);
  const bytes = Buffer.from(JSON.stringify(body));
  const sent = {
    host: `${hostname}:${port}`,
    connection: "close",
    "content-type": "application/json",
    "content-length": String(bytes.length),
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...headers,
  };
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect({ host: hostname, port: Number(port) });
  const pieces: Buffer[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    socket.on("data", (data) => pieces.push(Buffer.from(data)));
    socket.on("close", () => resolve());
    socket.on("error", reject);
  });
  socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  socket.write(bytes.subarray(0, 1));
  return {
    async finish() {
      socket.write(bytes.subarray(1));
      await ended;
      return parse(Buffer.concat(pieces).toString());
    },
  };
}

function parse(text: string): LateAnswer {
  const split = text.indexOf("\r\n\r\n");
  const [first = "", ...lines] = text.slice(0, split).split("\r\n");
  const headers = new Headers(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
  const rest = text.slice(split + 4);
  const json = /json/.test(headers.get("content-type") ?? "") && rest.startsWith("{");
  return { status: Number(first.split(" ")[1]), headers, body: json ? JSON.parse(rest) : rest };
}
