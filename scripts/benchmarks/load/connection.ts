import { type Receiver, ResponseParser } from "./response.ts";

export interface ConnectionEvents extends Receiver {
  /** The connection can no longer be used. Never called after `close`. */
  broken(problem: string): void;
}

export interface Connection {
  send(request: Buffer): void;
  /** Reads nothing more until `resume`. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** A TCP connection to 127.0.0.1, kept alive between answers. */
export async function connect(port: number, events: ConnectionEvents): Promise<Connection> {
  const parser = new ResponseParser(events);
  let unsent: Buffer | null = null;
  let over = false;
  const end = (problem: string) => {
    if (over) return;
    over = true;
    events.broken(problem);
  };
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(from, bytes) {
        if (over) return;
        try {
          parser.push(bytes);
        } catch (error) {
          end(error instanceof Error ? error.message : String(error));
          from.terminate();
        }
      },
      drain() {
        if (unsent !== null) write(unsent);
      },
      close: () => end("the connection was closed"),
      error: (_, error) => end(error.message),
    },
  });

  function write(bytes: Buffer): void {
    const written = Math.max(0, socket.write(bytes));
    unsent = written < bytes.length ? bytes.subarray(written) : null;
  }
  return {
    send: write,
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close() {
      over = true;
      socket.end();
    },
  };
}
