/** What a PostgreSQL server says that is not at hand: one of an older version, or one that demands a password. */
import { createServer, type Socket } from "node:net";

export type FakeAnswers =
  /** The values of the row that answers every statement, as text, by column. */
  | { readonly row: Readonly<Record<string, { readonly type: number; readonly value: string }>> }
  /** How every connection is refused. */
  | { readonly code: string; readonly message: string };

export interface FakeServer {
  readonly port: number;
  close(): void;
}

const AUTHENTICATED = message("R", int(0, 4));
const READY = message("Z", Buffer.from("I"));

/** Speaks as much of the protocol (version 3) as a client needs for its first statement. */
export async function startFakeServer(answers: FakeAnswers): Promise<FakeServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let isStarted = false;
    socket.on("error", () => socket.destroy());
    socket.on("data", (bytes: Buffer) => {
      if ("code" in answers) {
        const { code, message: text } = answers;
        const fields = `SFATAL\0VFATAL\0C${code}\0M${text}\0\0`;
        socket.end(message("E", Buffer.from(fields)));
      } else if (!isStarted) {
        isStarted = true;
        socket.write(Buffer.concat([AUTHENTICATED, READY]));
      } else if (bytes[0] === "Q".charCodeAt(0)) socket.write(Buffer.concat([...rowOf(answers.row), READY]));
      else if (bytes[0] === "P".charCodeAt(0))
        socket.write(Buffer.concat([message("1"), message("2"), ...rowOf(answers.row), READY]));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : 0,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

function rowOf(row: Readonly<Record<string, { readonly type: number; readonly value: string }>>): Buffer[] {
  const columns = Object.entries(row);
  const described = columns.map(([name, { type }]) =>
    Buffer.concat([
      Buffer.from(`${name}\0`),
      int(0, 4),
      int(0, 2),
      int(type, 4),
      int(-1, 2),
      int(-1, 4),
      int(0, 2),
    ]),
  );
  const values = columns.map(([, { value }]) => Buffer.concat([int(value.length, 4), Buffer.from(value)]));
  const count = int(columns.length, 2);
  return [
    message("T", Buffer.concat([count, ...described])),
    message("D", Buffer.concat([count, ...values])),
    message("C", Buffer.from("SELECT 1\0")),
  ];
}

function message(type: string, body: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([Buffer.from(type), int(body.length + 4, 4), body]);
}

function int(value: number, bytes: 2 | 4): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeIntBE(value, 0, bytes);
  return buffer;
}
