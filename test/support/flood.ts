import { join } from "node:path";

export interface Flood {
  readonly origin: string;
  /** The URL for MCP messages. */
  readonly url: string;
  stop(): Promise<void>;
}

/** A server whose answers repeat this event endlessly. @param first what each answer begins with */
export async function startFlood(event: string, first = ""): Promise<Flood> {
  const program = join(import.meta.dir, "flooding.ts");
  const child = Bun.spawn([process.execPath, program, event, first], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const origin = `http://127.0.0.1:${new TextDecoder().decode(value).trim()}`;
  return {
    origin,
    url: `${origin}/mcp`,
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** The largest growth of a count between two turns of the event loop, until the count has reached `end`. */
export async function mostInOneTurn(count: () => number, end: number): Promise<number> {
  let most = 0;
  for (let before = 0; before < end; ) {
    await turn();
    const now = count();
    most = Math.max(most, now - before);
    before = now;
  }
  return most;
}

/** A count that has reached `least`, once it has stopped growing. */
export async function countAtRest(count: () => number, least: number): Promise<number> {
  for (let last = -1; last !== count() || last < least; ) {
    last = count();
    for (let turns = 0; turns < 500; turns++) await turn();
    await Bun.sleep(5);
  }
  return count();
}
