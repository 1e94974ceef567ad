import type { Subprocess } from "bun";
import type { Household } from "./household.ts";

const LONGEST_START_MS = 30_000;
const START_STEP_MS = 100;

export interface ProgramOptions {
  readonly command: readonly string[];
  /** The port of 127.0.0.1 on which the program will listen. */
  readonly port: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A server of another product. */
export class ProgramServer {
  readonly #child: Subprocess;
  readonly #household: Household;
  readonly port: number;

  private constructor(household: Household, child: Subprocess, port: number) {
    this.#household = household;
    this.#child = child;
    this.port = port;
  }

  /**
   * Resolves when the port accepts connections.
   * @throws Error if that takes too long, or the program ends
   */
  static async start(
    household: Household,
    { command, port, env = {}, cwd }: ProgramOptions,
  ): Promise<ProgramServer> {
    const child = Bun.spawn([...command], {
      ...(cwd === undefined ? {} : { cwd }),
      // Nothing else from this environment: a provider's key, for example, must not change the measurement.
      env: { PATH: "", NODE_ENV: "production", ...env },
      stdio: ["ignore", "ignore", "inherit"],
    });
    household.adopt(child);
    for (let waited = 0; waited < LONGEST_START_MS; waited += START_STEP_MS) {
      if (await accepts(port)) return new ProgramServer(household, child, port);
      if (child.exitCode !== null) break;
      await Bun.sleep(START_STEP_MS);
    }
    await household.end(child);
    throw new Error(`${command.join(" ")} does not listen`);
  }

  get pid(): number {
    return this.#child.pid;
  }

  async stop(): Promise<void> {
    await this.#household.end(this.#child);
  }
}

export function freePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

async function accepts(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } });
    socket.end();
    return true;
  } catch {
    return false;
  }
}
