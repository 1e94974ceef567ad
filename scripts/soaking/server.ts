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
  /** Secret of an admin token. */
  readonly admin = createSecret(systemRandom);
  /** Checkpoints that are kept outside of the data directory. */
  readonly checkpoints: string;
  /** What the server takes for the system's folder of temporary files. */
  readonly temporary: string;
  /** Milliseconds from the start of a process until it was ready, one for each that got there. */
  readonly startTimes: number[] = [];
  readonly #options: ProcessOptions;
  readonly #remove: () => void;
  #process: ServerProcess | null = null;
  #life: Life | null = null;
  /** Every process that has ended. */
  readonly lives: Lived[] = [];
  #from = 0;
  #isAbandoned = false;
  /** Settles when the process that is being started is known here, or has ended. */
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

  /** @param settings text of gatehouse.yaml, made once it is known where checkpoints go */
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

  /** @param dropped told of a call that was not answered while the server was alive */
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

  /** Kills it at once, whatever it is doing. */
  async kill(): Promise<void> {
    this.#life?.end();
    await this.#process?.end("SIGKILL");
    this.#process = null;
    this.#lived("SIGKILL");
  }

  /** Starts it, and kills it so many milliseconds later. */
  async killWhileStarting(ms: number): Promise<void> {
    this.#refuseAbandoned();
    this.#from = Date.now();
    const starting = serveBriefly(ms, this.#options);
    this.#starting = starting;
    await starting;
    this.#lived("SIGKILL");
  }

  /** Asks it to end, and asks again so many milliseconds later. @returns its exit code */
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

  /** Leaves no process behind, not even one that is only starting: of that nobody knows the id until it is ready. */
  async abandon(): Promise<void> {
    this.#isAbandoned = true;
    // One that does not get ready has ended.
    await this.#starting.catch(() => {});
    const running = this.#process;
    this.#process = null;
    await running?.end("SIGKILL");
  }

  #refuseAbandoned(): void {
    if (this.#isAbandoned) throw new Error("the soak was given up");
  }

  #lived(signal: Lived["signal"]): void {
    this.lives.push({ from: this.#from, to: Date.now(), signal });
  }

  /** What `gatehouse ledger verify` says, null when the ledger holds. A server may run or not. */
  async verify(): Promise<string | null> {
    // Before the first checkpoint there is no such file.
    const outside = existsSync(this.checkpoints) ? ["--checkpoint", this.checkpoints] : [];
    const { code, stdout, stderr } = await run(
      ["ledger", "verify", "--data", this.data, ...outside],
      this.#options,
    );
    return code === 0 ? null : `exit code ${code}: ${stdout}${stderr}`;
  }

  /** Bytes of the files of the data directory, by name. */
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

  /** Ends a process that is still there, without a word. */
  [Symbol.dispose](): void {
    if (this.#process !== null) process.kill(this.#process.pid, "SIGKILL");
    this.#process = null;
  }

  remove(): void {
    this.#remove();
  }
}
