/** Servers that share a PostgreSQL of their own, each of which can be killed, frozen and started again. */
import { appendFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../../src/access/secret.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { type Cluster, startCluster } from "../../../test/support/postgres/cluster.ts";
import { createDatabase, type TestDatabase } from "../../../test/support/postgres/database.ts";
import {
  BINARY,
  fromSources,
  type Ran,
  run,
  type ServerProcess,
  serve,
  tempDir,
} from "../../../test/support/process.ts";

const MASTER_KEY = "7".repeat(64);
/** How long a server may refuse calls after it was started or woken up, or the database has come back. */
const SETTLED_MS = 12_000;
/** The same for a server that was started. */
const STARTED_MS = 1_000;

export interface ClusterOptions {
  readonly nodes: number;
  readonly binary: boolean;
  /** Multiplies the time that a server or the database may need after it was disturbed. */
  readonly patience: number;
  /** Variables of each server, such as those that change its clock. */
  readonly env: (index: number) => Readonly<Record<string, string>>;
  /** The text of gatehouse.yaml, for the file of checkpoints of each server. */
  readonly settings: (checkpoints: string) => string;
}

export class NodeCluster {
  /** The secret of an admin token. */
  readonly admin = createSecret(systemRandom);
  readonly home: string;
  readonly nodes: readonly KillableNode[];
  readonly server: Cluster;
  readonly database: TestDatabase;
  readonly #program: readonly string[];
  readonly #remove: () => void;
  readonly patience: number;
  /** `performance.now()` until which any answer may be missing: the database was disturbed. */
  #disturbedUntil = 0;
  #next = 0;

  private constructor(
    server: Cluster,
    database: TestDatabase,
    program: readonly string[],
    { nodes, env, settings, patience }: ClusterOptions,
  ) {
    const { path, remove } = tempDir();
    this.home = path;
    this.#remove = remove;
    this.server = server;
    this.database = database;
    this.#program = program;
    this.patience = patience;
    this.nodes = Array.from({ length: nodes }, (_, index) => {
      const data = join(path, `node-${index}`);
      const checkpoints = join(path, `checkpoints-${index}`);
      mkdirSync(data, { mode: 0o700 });
      writeFileSync(join(data, "gatehouse.yaml"), settings(checkpoints));
      return new KillableNode(data, checkpoints, {
        program,
        cwd: path,
        env: { ...this.env, ...env(index) },
        patience,
      });
    });
  }

  /** Ends the servers of a soak that fails. */
  #endWithProcess(): void {
    process.on("exit", () => {
      for (const node of this.nodes) node.endNow();
    });
  }

  static async prepare(options: ClusterOptions): Promise<NodeCluster> {
    if (options.binary && !existsSync(BINARY[0] ?? "")) {
      throw new Error("there is no dist/gatehouse yet: run scripts/build");
    }
    const program = options.binary ? BINARY : await fromSources();
    const server = await startCluster();
    const cluster = new NodeCluster(server, await createDatabase(server.url), program, options);
    cluster.#endWithProcess();
    return cluster;
  }

  get env(): Readonly<Record<string, string>> {
    return {
      GATEHOUSE_STORE: this.database.url,
      GATEHOUSE_MASTER_KEY: MASTER_KEY,
      GATEHOUSE_ADMIN_TOKEN: this.admin,
    };
  }

  /** The next server in turn that takes calls. Null if there is none. */
  next(): KillableNode | null {
    for (let tries = 0; tries < this.nodes.length; tries++) {
      const node = this.nodes[this.#next++ % this.nodes.length];
      if (node?.isServing) return node;
    }
    return null;
  }

  /** From now on, and for a while after `settle`, any answer may be missing. */
  disturb(): void {
    this.#disturbedUntil = Number.POSITIVE_INFINITY;
  }

  settle(): void {
    this.#disturbedUntil = performance.now() + SETTLED_MS * this.patience;
  }

  get isDisturbed(): boolean {
    return performance.now() < this.#disturbedUntil;
  }

  cli(args: readonly string[]): Promise<Ran> {
    return run(args, { program: this.#program, cwd: this.home, env: this.env });
  }

  /** Leaves no process behind. */
  async end(): Promise<void> {
    for (const node of this.nodes) await node.kill();
    await this.server.remove();
  }

  remove(): void {
    this.#remove();
  }
}

interface NodeOptions {
  readonly program: readonly string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly patience: number;
}

export class KillableNode {
  readonly data: string;
  readonly checkpoints: string;
  readonly #options: NodeOptions;
  #process: ServerProcess | null = null;
  #isFrozen = false;
  #disturbedUntil = 0;

  constructor(data: string, checkpoints: string, options: NodeOptions) {
    this.data = data;
    this.checkpoints = checkpoints;
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#process !== null;
  }

  /** Whether a load balancer sends calls to it. */
  get isServing(): boolean {
    return this.#process !== null && !this.#isFrozen;
  }

  get url(): string {
    return this.#process?.url ?? "http://127.0.0.1:9";
  }

  /** Whether its answers may be missing. */
  get isDisturbed(): boolean {
    return performance.now() < this.#disturbedUntil;
  }

  async start(): Promise<void> {
    const started = await serve(["--data", this.data], this.#options);
    this.#process = started;
    this.#disturbedUntil = performance.now() + STARTED_MS * this.#options.patience;
  }

  async kill(): Promise<void> {
    const running = this.#process;
    this.#process = null;
    this.#disturbedUntil = Number.POSITIVE_INFINITY;
    this.#isFrozen = false;
    await running?.end("SIGKILL");
    this.#keepLog(running);
  }

  /** Without waiting for its end. */
  endNow(): void {
    if (this.#process !== null) process.kill(this.#process.pid, "SIGKILL");
  }

  /** @returns its exit code */
  async stop(): Promise<number | null> {
    const running = this.#process;
    this.#disturbedUntil = Number.POSITIVE_INFINITY;
    const code = (await running?.end("SIGTERM")) ?? null;
    this.#process = null;
    this.#keepLog(running);
    return code;
  }

  /** Appends what a server has logged to `<data>.log`, beside its data directory. */
  #keepLog(ended: ServerProcess | null): void {
    if (ended !== null) appendFileSync(`${this.data}.log`, ended.stderr());
  }

  freeze(): void {
    if (this.#process === null) return;
    this.#isFrozen = true;
    this.#disturbedUntil = Number.POSITIVE_INFINITY;
    process.kill(this.#process.pid, "SIGSTOP");
  }

  thaw(): void {
    if (this.#process === null) return;
    process.kill(this.#process.pid, "SIGCONT");
    this.#isFrozen = false;
    this.#disturbedUntil = performance.now() + SETTLED_MS * this.#options.patience;
  }
}
