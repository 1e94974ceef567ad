import { type Connection, connect } from "./connection.ts";
import type { HoldJob } from "./jobs.ts";

/**
 * Less than a server's backlog of unaccepted connections. Beyond it, the kernel makes connections wait for a second.
 */
const AT_ONCE = 50;
const LONGEST_MS = 30_000;
/** How long a slow reader spends, once a second, reading what has arrived. */
const TAKES_MS = 5;
const LOOKS_MS = 1_000;

/** Streams that are open and quiet. */
export class HeldStreams {
  #open: Connection[] = [];
  #slow: Timer | undefined;

  /** Opens this many streams. Each counts as open when the first bytes of its body have arrived. */
  async hold({ port, request, count, slowly = false }: HoldJob): Promise<number> {
    const requests = typeof request === "string" ? [request] : request;
    while (this.#open.length < count) {
      const from = this.#open.length;
      const next = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, index) =>
        openOne(port, Buffer.from(requests[(from + index) % requests.length] ?? "")),
      );
      const opened = await Promise.all(next);
      if (slowly) for (const connection of opened) connection.pause();
      this.#open.push(...opened);
    }
    if (slowly) this.#slow = setInterval(() => void this.#takeALittle(), LOOKS_MS);
    return this.#open.length;
  }

  async #takeALittle(): Promise<void> {
    for (const connection of this.#open) connection.resume();
    await Bun.sleep(TAKES_MS);
    for (const connection of this.#open) connection.pause();
  }

  letGo(): void {
    clearInterval(this.#slow);
    for (const connection of this.#open.splice(0)) connection.close();
  }
}

async function openOne(port: number, request: Buffer): Promise<Connection> {
  const opened = Promise.withResolvers<void>();
  const connection = await connect(port, {
    body: () => opened.resolve(),
    end: (status) => opened.reject(new Error(`a stream ended with status ${status}`)),
    broken: (problem) => opened.reject(new Error(problem)),
  });
  const patience = setTimeout(() => opened.reject(new Error("a stream did not open")), LONGEST_MS);
  connection.send(request);
  await opened.promise;
  clearTimeout(patience);
  return connection;
}
