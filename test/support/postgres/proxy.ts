/** A proxy between a store and its server, which loses connections at a chosen statement. */
import { connect, createServer, type Socket } from "node:net";

/**
 * `request`: the server never receives the statement, or what follows it. `answer`: the server executes it and answers with
 * the same text, as it does to COMMIT, and that answer is lost. `late`: like `request`, but the server receives it when `deliver` is called, long after the client has lost
 * its connection.
 */
export type Loss = "request" | "answer" | "late";

export interface TestProxy {
  /** The server's URL, through this proxy. */
  readonly url: string;
  /** Loses the next connection that sends this text. */
  loseAt(text: string, loss: Loss): void;
  /** Resolves when that has happened. */
  readonly lost: Promise<void>;
  /** Lets the server receive what was held back. Resolves once it has ended that connection. */
  deliver(): Promise<void>;
  /**
   * The next connection that sends this text gets no answer from its next commit on, until `release` is called.
   * @returns resolves when the server has committed
   */
  delayCommitAfter(text: string): Promise<void>;
  release(): void;
  /** Ends all connections. */
  cut(): void;
  /** Until `resume`, nothing passes in either direction, and connections stay open. */
  swallow(): void;
  resume(): void;
  close(): Promise<void>;
}

interface Plan {
  readonly text: string;
  readonly loss: Loss;
}

/** The answers to a commit, and to what follows it, that a client is still waiting for. */
interface Delay {
  readonly text: string;
  readonly bytes: Buffer[];
  readonly committed: PromiseWithResolvers<void>;
  link: Link | null;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
  isLost: boolean;
}

export async function startProxy(url: string): Promise<TestProxy> {
  const target = new URL(url);
  const links = new Set<Link>();
  let plan: Plan | null = null;
  let lost = Promise.withResolvers<void>();
  let held: { readonly server: Socket; readonly bytes: Buffer[] } | null = null;
  let isSwallowing = false;
  let delay: Delay | null = null;

  /** @returns whether the answer is delayed */
  function isDelayed(link: Link, bytes: Buffer): boolean {
    if (delay?.link !== link || (delay.bytes.length === 0 && !bytes.includes("COMMIT"))) return false;
    delay.bytes.push(bytes);
    delay.committed.resolve();
    return true;
  }

  function lose(link: Link, bytes: Buffer, { text, loss }: Plan): void {
    plan = null;
    link.isLost = true;
    if (loss === "answer") {
      link.server.on("data", (answer: Buffer) => {
        if (!answer.includes(text)) return;
        end(link);
        lost.resolve();
      });
      link.server.write(bytes);
      return;
    }
    if (loss === "late") held = { server: link.server, bytes: [bytes] };
    else link.server.destroy();
    link.client.destroy();
    lost.resolve();
  }

  function end(link: Link): void {
    link.client.destroy();
    link.server.destroy();
    links.delete(link);
  }

  const listener = createServer((client) => {
    const server = connect(Number(target.port), target.hostname);
    const link: Link = { client, server, isLost: false };
    links.add(link);
    client.on("data", (bytes: Buffer) => {
      if (isSwallowing || link.isLost) return;
      if (plan && bytes.includes(plan.text)) lose(link, bytes, plan);
      else server.write(bytes);
      if (delay?.link === null && bytes.includes(delay.text)) delay.link = link;
    });
    server.on("data", (bytes: Buffer) => {
      if (!isSwallowing && !link.isLost && !isDelayed(link, bytes)) client.write(bytes);
    });
    for (const socket of [client, server]) socket.on("error", () => socket.destroy());
    client.on("close", () => {
      if (held?.server !== server) end(link);
    });
    server.on("close", () => end(link));
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address();
  const own = new URL(url);
  own.port = String(typeof address === "object" ? address?.port : "");

  return {
    url: own.href,
    loseAt(text, loss) {
      lost = Promise.withResolvers<void>();
      plan = { text, loss };
    },
    get lost() {
      return lost.promise;
    },
    async deliver() {
      if (!held) throw new Error("nothing was held back");
      const { server, bytes } = held;
      // The server may have ended it by itself.
      if (server.destroyed) return;
      const closed = new Promise<void>((resolve) => server.once("close", () => resolve()));
      for (const each of bytes) server.write(each);
      server.end();
      await closed;
    },
    delayCommitAfter(text) {
      delay = { text, bytes: [], committed: Promise.withResolvers<void>(), link: null };
      return delay.committed.promise;
    },
    release() {
      for (const bytes of delay?.bytes ?? []) delay?.link?.client.write(bytes);
      delay = null;
    },
    cut() {
      for (const link of [...links]) end(link);
    },
    swallow() {
      isSwallowing = true;
    },
    resume() {
      isSwallowing = false;
    },
    async close() {
      for (const link of [...links]) end(link);
      await new Promise<void>((resolve) => listener.close(() => resolve()));
    },
  };
}
