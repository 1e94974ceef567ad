/** The program as its users run it: a separate process with an exit code and two outputs. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "..", "..");

/** The command that starts the program. */
export type Program = readonly string[];

export const BINARY: Program = [join(ROOT, "dist", "gatehouse")];

const WORKERS = [join("vault", "worker"), join("connectors", "openapi", "reading", "worker")];

let bundled: Promise<Program> | undefined;

/**
 * The sources in one file, built once for all tests. A process then starts in half the time that it needs with 1,400
 * modules.
 */
export function fromSources(): Promise<Program> {
  bundled ??= bundle();
  return bundled;
}

async function bundle(): Promise<Program> {
  const { path, remove } = tempDir();
  process.on("exit", remove);
  // Workers are separate programs.
  for (const entry of ["main.ts", ...WORKERS.map((worker) => `${worker}.ts`)]) {
    const built = await Bun.build({
      entrypoints: [join(ROOT, "src", entry)],
      root: join(ROOT, "src"),
      target: "bun",
      outdir: path,
    });
    if (!built.success) throw new AggregateError(built.logs, `${entry} cannot be bundled`);
  }
  // Each of them is looked up under its name in the sources.
  for (const worker of WORKERS) writeFileSync(join(path, `${worker}.ts`), 'import "./worker.js";\n');
  writeFileSync(join(path, "main.ts"), 'import "./main.js";\n');
  return [process.execPath, "--no-env-file", join(path, "main.js")];
}

export interface ProcessOptions {
  /** Default: from the sources. */
  readonly program?: Program;
  readonly cwd: string;
  /** The process's environment, apart from a PATH and a HOME that lead nowhere. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ServerProcess {
  readonly url: string;
  readonly pid: number;
  /** The log so far. */
  stderr(): string;
  /** The exit code, once it has ended by itself. */
  readonly ended: Promise<number>;
  /**
   * Sends the signal and waits for the end.
   * @returns the exit code; null if the signal ended the process
   */
  end(signal: "SIGTERM" | "SIGINT" | "SIGKILL"): Promise<number | null>;
}

const READY_MS = 20_000;

export function tempDir(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "gatehouse-process-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

function environment({ cwd, env }: ProcessOptions): Record<string, string> {
  return { PATH: "", HOME: cwd, ...env };
}

/** Runs one command line to its end, with empty standard input. */
export async function run(args: readonly string[], options: ProcessOptions): Promise<Ran> {
  const child = Bun.spawn([...(options.program ?? (await fromSources())), ...args], {
    cwd: options.cwd,
    env: environment(options),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** Starts a server and kills it this many milliseconds later, whatever it is doing then (probably starting). */
export async function serveBriefly(ms: number, options: ProcessOptions): Promise<void> {
  const program = options.program ?? (await fromSources());
  const child = Bun.spawn([...program, "serve", "--listen", "127.0.0.1:0"], {
    cwd: options.cwd,
    env: environment(options),
    stdio: ["ignore", "ignore", "ignore"],
  });
  await Bun.sleep(ms);
  child.kill("SIGKILL");
  await child.exited;
}

/** Starts a server on any free port and waits until it reports that it is ready. */
export async function serve(args: readonly string[], options: ProcessOptions): Promise<ServerProcess> {
  const program = options.program ?? (await fromSources());
  const command = [...program, "serve", "--listen", "127.0.0.1:0", ...args];
  const child = Bun.spawn(command, {
    cwd: options.cwd,
    env: environment(options),
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  let log = "";
  let said = () => {};
  void (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stderr) {
      log += decoder.decode(chunk, { stream: true });
      said();
    }
    said();
  })();
  const deadline = Date.now() + READY_MS;
  for (;;) {
    const url = readyUrl(log);
    if (url !== undefined) {
      return { url, pid: child.pid, stderr: () => log, ended: child.exited, end: (signal) => end(signal) };
    }
    if (child.exitCode !== null || Date.now() > deadline) {
      child.kill("SIGKILL");
      throw new Error(`the server did not start (exit code ${child.exitCode}): ${log}`);
    }
    await Promise.race([
      new Promise<void>((resolve) => {
        said = resolve;
      }),
      child.exited,
      Bun.sleep(100),
    ]);
  }

  async function end(signal: "SIGTERM" | "SIGINT" | "SIGKILL"): Promise<number | null> {
    child.kill(signal);
    await child.exited;
    return child.signalCode === null ? child.exitCode : null;
  }
}

function readyUrl(log: string): string | undefined {
  for (const line of log.split("\n").slice(0, -1)) {
    if (!line.startsWith("{")) continue;
    const entry = JSON.parse(line) as { message?: string; url?: string };
    if (entry.message === "gatehouse is ready") return entry.url;
  }
  return undefined;
}

/** The first line of a process's output, or all of it if it ends before. */
export async function firstLine(output: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of output) {
    text += decoder.decode(part, { stream: true });
    if (text.includes("\n")) break;
  }
  return text.trim();
}
