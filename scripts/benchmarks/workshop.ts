import type { Subprocess } from "bun";
import type { Static } from "typebox";
import type { FilledLedger } from "./ledger/filled.ts";
import { type ExchangesJob, type ExchangesResult, exchangesResult } from "./load/jobs.ts";
import { Gatehouse, type GatehouseOptions, programOf } from "./processes/gatehouse.ts";
import type { Household } from "./processes/household.ts";
import { cpuMicros } from "./processes/usage.ts";
import { Worker } from "./processes/worker.ts";
import { type bareConfig, type bareMcpConfig, listening, type proxyConfig } from "./servers/config.ts";
import type { FilledVault } from "./vault/searchers.ts";

export interface WorkshopOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly binary: boolean;
  /** A folder of collections to search, or null. */
  readonly collections: string | null;
  /** The size of the vault's large collection. */
  readonly passages: number;
  /** Whether other products may be installed. */
  readonly peers: boolean;
  /** The size of the large ledger. */
  readonly entries: number;
}

const LONGEST_START_MS = 20_000;
const START_STEP_MS = 100;

/** A server that can be put under load. */
export interface Target {
  readonly pid: number;
  readonly port: number;
}

/** One round of load on one server. */
export interface Round extends ExchangesResult {
  readonly perSecond: number;
  /** Microseconds of the server's CPU per answer, the figure that a busy machine disturbs least. */
  readonly cpuMicros: number | null;
}

/** Everything that a scenario needs: processes to measure, and a load generator to measure them with. */
export class Workshop {
  readonly #household: Household;
  readonly #program: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly collections: string | null;
  readonly passages: number;
  readonly peers: boolean;
  readonly entries: number;
  readonly generator: Worker;
  /** The vault that one scenario has filled, for later ones, because filling takes minutes. */
  filledVault: FilledVault | null = null;
  /** The ledger that one scenario has filled, for later ones. */
  filledLedger: FilledLedger | null = null;

  constructor(household: Household, options: WorkshopOptions) {
    this.#household = household;
    this.#program = programOf(options.binary);
    this.rounds = options.rounds;
    this.seconds = options.seconds;
    this.collections = options.collections;
    this.passages = options.passages;
    this.peers = options.peers;
    this.entries = options.entries;
    this.generator = Worker.start(household, "load/main.ts");
  }

  folder(): string {
    return this.#household.folder();
  }

  gatehouse(options?: GatehouseOptions): Promise<Gatehouse> {
    return Gatehouse.start(this.#household, this.#program, options);
  }

  /**
   * Runs a command of the command line to its end. `output` contains both its outputs, and `mostBytes` is its peak
   * resident memory.
   */
  async verb(...args: readonly string[]): Promise<{
    readonly code: number;
    readonly output: string;
    readonly ms: number;
    readonly mostBytes: number;
  }> {
    const home = this.folder();
    const begun = performance.now();
    const child = Bun.spawn([...this.#program, ...args], {
      cwd: home,
      env: { PATH: "", HOME: home, NODE_ENV: "production" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#household.adopt(child);
    const [output, errors, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    const ms = performance.now() - begun;
    this.#household.remove(home);
    return { code, output: output + errors, ms, mostBytes: child.resourceUsage()?.maxRSS ?? 0 };
  }

  /** Starts a script of this folder in a separate process. */
  worker(script: string): Worker {
    return Worker.start(this.#household, script);
  }

  /** Starts another product's server, which takes `--port`, and waits until it answers. */
  program(script: string): Promise<PeerServer> {
    return PeerServer.start(this.#household, script);
  }

  bare(config: Static<typeof bareConfig.schema>): Promise<HelperServer> {
    return HelperServer.start(this.#household, "servers/bare.ts", config);
  }

  bareMcp(config: Static<typeof bareMcpConfig.schema>): Promise<HelperServer> {
    return HelperServer.start(this.#household, "servers/bare-mcp.ts", config);
  }

  proxy(config: Static<typeof proxyConfig.schema>): Promise<HelperServer> {
    return HelperServer.start(this.#household, "servers/proxy.ts", config);
  }

  ceiling(): Promise<HelperServer> {
    return HelperServer.start(this.#household, "servers/ceiling.ts", {});
  }

  upstream(): Promise<HelperServer> {
    return HelperServer.start(this.#household, "servers/upstream.ts", {});
  }

  /** @throws Error if any answer was not as it should be */
  async load(
    { pid, port }: Target,
    job: Omit<ExchangesJob, "kind" | "port" | "seconds">,
    seconds = this.seconds,
  ): Promise<Round> {
    const before = cpuMicros(pid);
    const whole: ExchangesJob = { kind: "exchanges", port, seconds, ...job };
    const result = await this.generator.ask(whole, exchangesResult);
    const after = cpuMicros(pid);
    if (result.problems.length > 0) {
      const problems = result.problems.map(({ text, count }) => `${count} × ${text}`).join(", ");
      throw new Error(`besides ${result.answered} good answers: ${problems}`);
    }
    return {
      ...result,
      perSecond: result.measured / result.seconds,
      cpuMicros: before === null || after === null ? null : (after - before) / result.answered,
    };
  }
}

/** One of the small servers of this folder. */
export class HelperServer implements Target {
  readonly #worker: Worker;
  readonly port: number;

  private constructor(worker: Worker, port: number) {
    this.#worker = worker;
    this.port = port;
  }

  static async start(household: Household, script: string, config: object): Promise<HelperServer> {
    const worker = Worker.start(household, script);
    const { port } = await worker.ask(config, listening);
    return new HelperServer(worker, port);
  }

  get pid(): number {
    return this.#worker.pid;
  }

  async stop(): Promise<void> {
    await this.#worker.end();
  }
}

/** A server of another product. */
export class PeerServer implements Target {
  readonly #child: Subprocess;
  readonly #household: Household;
  readonly port: number;

  private constructor(household: Household, child: Subprocess, port: number) {
    this.#household = household;
    this.#child = child;
    this.port = port;
  }

  static async start(household: Household, script: string): Promise<PeerServer> {
    const port = freePort();
    const child = Bun.spawn([process.execPath, "--no-env-file", script, `--port=${port}`, "--headless"], {
      env: { PATH: "", NODE_ENV: "production" },
      stdio: ["ignore", "ignore", "inherit"],
    });
    household.adopt(child);
    for (let waited = 0; waited < LONGEST_START_MS; waited += START_STEP_MS) {
      if (await accepts(port)) return new PeerServer(household, child, port);
      await Bun.sleep(START_STEP_MS);
    }
    throw new Error(`${script} does not answer`);
  }

  get pid(): number {
    return this.#child.pid;
  }

  async stop(): Promise<void> {
    await this.#household.end(this.#child);
  }
}

function freePort(): number {
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
