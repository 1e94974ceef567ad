/** The server that is killed, on one data directory through all its lives. */
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import {
  BINARY,
  fromSources,
  type ProcessOptions,
  run,
  type ServerProcess,
  serve,
  serveBriefly,
  tempDir,
} from "../../test/support/process.ts";
import { Life } from "./life.ts";

/** One process of the server. */
export interface Lived {
  /** Milliseconds since the Unix epoch. */
  readonly from: number;
  readonly to: number;
  readonly signal: "SIGKILL" | "SIGTERM";
}

export class KilledServer {
  readonly data: string;
  /** The secret of an admin token. */
  readonly admin = createSecret(systemRandom);
  /** The file of checkpoints outside the data directory. */
  readonly checkpoints: string;
  /** The folder that the server uses as the system's folder for temporary files. */
  readonly temporary: string;
  /** Milliseconds from a process's start until it was ready, for each process that got there. */
  readonly startTimes: number[] = [];
  readonly #options: ProcessOptions;
  readonly #remove: () => void;
  #process: ServerProcess | null = null;
  #life: Life | null = null;
  /** Every process that has ended. */
  readonly lives: Lived[] = [];
  #from = 0;
  #isAbandoned = false;
  /** Settles when the process being started is registered here or has ended. */
  #starting: Promise<unknown> = Promise.resolve();

  private constructor(options: ProcessOptions, remove: () => void) {
    const { cwd } = options;
    this.data = join(cwd, "gatehouse-data");
    this.checkpoints = join(cwd, "checkpoints");
    this.temporary = join(cwd, "temporary");
    const env = { GATEHOUSE_ADMIN_TOKEN: this.admin, TMPDIR: this.temporary };
    this.#options = { ...options, env };
    this.#remove = remove;
  }

  /** @param settings the text of gatehouse.yaml, made once the place of checkpoints is known */
  static async prepare(binary: boolean, settings: (checkpoints: string) => string): Promise<KilledServer> {
    if (binary && !existsSync(BINARY[0] ?? "")) {
      throw new Error("there is no dist/gatehouse yet: run scripts/build");
    }
    const program = binary ? BINARY : await fromSources();
    const { path, remove } = tempDir();
    const server = new KilledServer({ program, cwd: path }, remove);
    process.on("exit", () => server[Symbol.dispose]());
    mkdirSync(server.data, { mode: 0o700 });
    mkdirSync(server.temporary);
    writeFileSync(join(server.data, "gatehouse.yaml"), settings(server.checkpoints));
    return server;
  }

  /** @param dropped called with each call that was not answered while the server was alive */
  async start(dropped: (what: string) => void): Promise<Life> {
    this.#refuseAbandoned();
    const begun = performance.now();
    this.#from = Date.now();
    const starting = serve([], this.#options);
    this.#starting = starting;
    this.#process = await starting;
    this.startTimes.push(performance.now() - begun);
    this.#life = new Life(this.#process.url, this.admin, dropped);
    return this.#life;
  }

  /** Kills the server at once, whatever it is doing. */
  async kill(): Promise<void> {
    this.#life?.end();
    await this.#process?.end("SIGKILL");
    this.#process = null;
    this.#lived("SIGKILL");
  }

  /** Starts the server and kills it this many milliseconds later. */
  async killWhileStarting(ms: number): Promise<void> {
    this.#refuseAbandoned();
    this.#from = Date.now();
    const starting = serveBriefly(ms, this.#options);
    this.#starting = starting;
    await starting;
    this.#lived("SIGKILL");
  }

  /**
   * Asks the server to end, and asks again this many milliseconds later.
   * @returns its exit code
   */
  async stop(againAfterMs: number | null = null): Promise<number | null> {
    this.#life?.end();
    const asked = this.#process;
    const ending = asked?.end("SIGTERM").finally(() => {
      this.#process = null;
    });
    if (againAfterMs !== null) {
      await Promise.race([Bun.sleep(againAfterMs), ending]);
      if (this.#process !== null) process.kill(this.#process.pid, "SIGTERM");
    }
    const code = (await ending) ?? null;
    this.#process = null;
    this.#lived("SIGTERM");
    return code;
  }

  /** Leaves no process behind, not even one that is still starting, whose id is unknown until it is ready. */
  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    // A process that never becomes ready has ended.
    await this.#starting.catch(() => {});
    const running = this.#process;
    this.#process = null;
    await running?.end("SIGKILL");
  }

  #refuseAbandoned(): void {
    if (this.#isAbandoned) throw new Error("the soak was abandoned");
  }

  #lived(signal: Lived["signal"]): void {
    this.lives.push({ from: this.#from, to: Date.now(), signal });
  }

  /** The findings of `gatehouse ledger verify`; null if the ledger holds. A server may be running. */
  async verify(): Promise<string | null> {
    // The file does not exist before the first checkpoint.
    const outside = existsSync(this.checkpoints) ? ["--checkpoint", this.checkpoints] : [];
    const { code, stdout, stderr } = await run(
      ["ledger", "verify", "--data", this.data, ...outside],
      this.#options,
    );
    return code === 0 ? null : `exit code ${code}: ${stdout}${stderr}`;
  }

  /** Sizes in bytes of the data directory's files, by name. */
  sizes(): Map<string, number> {
    return new Map(
      readdirSync(this.data, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => {
          const path = join(entry.parentPath, entry.name);
          return [path.slice(this.data.length + 1), statSync(path).size] as const;
        }),
    );
  }

  /** Ends a process that is still running, without a message. */
  [Symbol.dispose](): void {
    if (this.#process !== null) process.kill(this.#process.pid, "SIGKILL");
    this.#process = null;
  }

  remove(): void {
    this.#remove();
  }
}
