import type { Static } from "typebox";
import type { FilledLedger } from "./ledger/filled.ts";
import { type ExchangesJob, type ExchangesResult, exchangesResult } from "./load/jobs.ts";
import { type Cores, onCore, type Role } from "./processes/cores.ts";
import { Gatehouse, type GatehouseOptions, programOf } from "./processes/gatehouse.ts";
import type { Household } from "./processes/household.ts";
import { type ProgramOptions, ProgramServer } from "./processes/program.ts";
import { Tracer } from "./processes/tracer.ts";
import { cpuMicrosOf } from "./processes/usage.ts";
import { Worker } from "./processes/worker.ts";
import { type bareConfig, type bareMcpConfig, listening, type proxyConfig } from "./servers/config.ts";
import { type Launch, launch } from "./start/launch.ts";
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
  /** The cores of the server under test and of the load. If null, every process may use all of them. */
  readonly cores: Cores | null;
}

/** A server that can be put under load. */
export interface Target {
  readonly pid: number;
  /** Further processes that the server consists of. */
  readonly otherPids?: readonly number[];
  readonly port: number;
  /** Further ports, where other servers give the same answers. */
  readonly otherPorts?: readonly number[];
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
  readonly #cores: Cores | null;
  readonly binary: boolean;
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
  readonly notes = new Set<string>();

  constructor(household: Household, options: WorkshopOptions) {
    this.#household = household;
    this.#cores = options.cores;
    this.binary = options.binary;
    this.rounds = options.rounds;
    this.seconds = options.seconds;
    this.collections = options.collections;
    this.passages = options.passages;
    this.peers = options.peers;
    this.entries = options.entries;
    this.generator = this.worker("load/main.ts", "load");
  }

  /** Says once, below the figures, what has to be known to read them. */
  note(text: string): void {
    this.notes.add(text);
  }

  /** Ends the load generator. */
  async close(): Promise<void> {
    await this.generator.end();
  }

  folder(): string {
    return this.#household.folder();
  }

  /** @param isAlone whether nothing else runs, so that the server may use every core */
  gatehouse(options?: GatehouseOptions, isAlone = false): Promise<Gatehouse> {
    const command = programOf(this.binary, options?.preload);
    const program = isAlone ? command : onCore(this.#cores, "server", command);
    return Gatehouse.start(this.#household, program, options);
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
    const child = Bun.spawn([...programOf(this.binary), ...args], {
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

  /** Starts a script of this folder in a separate process. Without a role, it may use every core. */
  worker(script: string, role?: Role): Worker {
    return Worker.start(this.#household, script, (command) =>
      role === undefined ? command : onCore(this.#cores, role, command),
    );
  }

  /** Starts another product's server, or a part of it. */
  program(options: ProgramOptions): Promise<ProgramServer> {
    const command = onCore(this.#cores, "server", options.command);
    return ProgramServer.start(this.#household, { ...options, command });
  }

  /** Starts a program on all cores, and measures its start. `command` receives the port to listen on. */
  launch(folder: string, command: (port: number) => readonly string[]): Promise<Launch> {
    return launch(this.#household, folder, command);
  }

  /** Removes a folder before the end. */
  remove(folder: string): void {
    this.#household.remove(folder);
  }

  /** Starts a program that watches a process. */
  tracer(command: readonly string[], pid: number): Tracer {
    return new Tracer(this.#household, command, pid);
  }

  bare(config: Static<typeof bareConfig.schema>, isAlone = false): Promise<HelperServer> {
    return HelperServer.start(this.worker("servers/bare.ts", isAlone ? undefined : "server"), config);
  }

  bareMcp(config: Static<typeof bareMcpConfig.schema>): Promise<HelperServer> {
    return HelperServer.start(this.worker("servers/bare-mcp.ts", "server"), config);
  }

  proxy(config: Static<typeof proxyConfig.schema>): Promise<HelperServer> {
    return HelperServer.start(this.worker("servers/proxy.ts", "server"), config);
  }

  ceiling(): Promise<HelperServer> {
    return HelperServer.start(this.worker("servers/ceiling.ts", "server"), {});
  }

  upstream(): Promise<HelperServer> {
    return HelperServer.start(this.worker("servers/upstream.ts", "load"), {});
  }

  /** @throws Error if any answer was not as it should be */
  async load(
    { pid, otherPids = [], port, otherPorts = [] }: Target,
    job: Omit<ExchangesJob, "kind" | "port" | "otherPorts" | "seconds">,
    seconds = this.seconds,
  ): Promise<Round> {
    const pids = [pid, ...otherPids];
    const before = cpuMicrosOf(pids);
    const whole: ExchangesJob = {
      ...{ kind: "exchanges", port, seconds, ...job },
      ...(otherPorts.length === 0 ? {} : { otherPorts: [...otherPorts] }),
    };
    const result = await this.generator.ask(whole, exchangesResult);
    const after = cpuMicrosOf(pids);
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

  static async start(worker: Worker, config: object): Promise<HelperServer> {
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
