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
    const begun = performance.now();
    this.#process = await serve([], this.#options);
    this.startTimes.push(performance.now() - begun);
    this.#life = new Life(this.#process.url, this.admin, dropped);
    return this.#life;
  }

  /** Kills it at once, whatever it is doing. */
  async kill(): Promise<void> {
    this.#life?.end();
    await this.#process?.end("SIGKILL");
    this.#process = null;
  }

  /** Starts it, and kills it so many milliseconds later. */
  killWhileStarting(ms: number): Promise<void> {
    return serveBriefly(ms, this.#options);
  }

  /** Asks it to end. @returns its exit code */
  async stop(): Promise<number | null> {
    this.#life?.end();
    const code = (await this.#process?.end("SIGTERM")) ?? null;
    this.#process = null;
    return code;
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
