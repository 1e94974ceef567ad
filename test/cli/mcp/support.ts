/** `gatehouse mcp` as clients use it: the SDK's client, and one that writes its lines by hand. */
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { fromSources } from "../../support/process.ts";

export const UPSTREAM = join(import.meta.dir, "..", "..", "support", "fake-mcp", "stdio.ts");

export interface Place {
  readonly cwd: string;
  readonly token: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  /** The command line to run. Default: from the sources. */
  readonly program?: readonly string[];
}

/** Processes that still run. */
const started = new Set<number>();

/** Kills what a failed test left running, which would keep the data directory locked. */
export function endAll(): void {
  for (const pid of started) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended already, as it should.
    }
  }
  started.clear();
}

export interface Connected {
  readonly client: Client;
  stderr(): string;
}

/** Starts the bridge as a client does. `prepare` sets handlers before the first message. */
export async function connect(
  { cwd, token, env, args = [], program }: Place,
  prepare: (client: Client) => void = () => {},
): Promise<Connected> {
  const [command = "", ...rest] = program ?? (await fromSources());
  const transport = new StdioClientTransport({
    command,
    args: [...rest, "mcp", ...args],
    cwd,
    env: { PATH: "", HOME: cwd, GATEHOUSE_TOKEN: token, ...env },
    stderr: "pipe",
  });
  let said = "";
  transport.stderr?.on("data", (chunk: Uint8Array) => {
    said += Buffer.from(chunk).toString();
  });
  const client = new Client({ name: "tests", version: "1" });
  prepare(client);
  await client.connect(transport);
  const { pid } = transport;
  if (pid !== null) started.add(pid);
  client.onclose = () => started.delete(pid ?? 0);
  return { client, stderr: () => said };
}

export interface Answer {
  readonly jsonrpc: string;
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: { code?: string } };
}

export interface Spoken {
  write(...lines: readonly string[]): void;
  /** Waits for the answer to a request. */
  answer(id: string | number): Promise<Answer>;
  kill(signal: "SIGTERM" | "SIGINT"): void;
  /** Closes its input, unless `end` already did, and waits. Every line of its output must be JSON-RPC. */
  ended(): Promise<{
    readonly code: number | null;
    readonly answers: readonly Answer[];
    readonly stderr: string;
  }>;
  end(): void;
}

export const INITIALIZE = request("hello", "initialize", {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "tests", version: "1" },
});
export const INITIALIZED = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });

export function request(id: string | number, method: string, params: object = {}): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

/** Starts the bridge and speaks to it line by line. */
export async function speak({ cwd, token, env, args = [], program }: Place): Promise<Spoken> {
  const child = Bun.spawn([...(program ?? (await fromSources())), "mcp", ...args], {
    cwd,
    env: { PATH: "", HOME: cwd, GATEHOUSE_TOKEN: token, ...env },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  started.add(child.pid);
  void child.exited.then(() => started.delete(child.pid));
  const answers: Answer[] = [];
  let told = Promise.withResolvers<void>();
  const stderr = new Response(child.stderr).text();
  const reading = (async () => {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const answer = JSON.parse(line) as Answer;
        if (answer.jsonrpc !== "2.0") throw new Error(`standard output has ${line.slice(0, 200)}`);
        answers.push(answer);
      }
      told.resolve();
      told = Promise.withResolvers<void>();
    }
    if (rest !== "") throw new Error(`standard output ends with ${rest.slice(0, 200)}`);
    told.resolve();
  })();
  return {
    write(...lines) {
      for (const line of lines) child.stdin.write(`${line}\n`);
      child.stdin.flush();
    },
    async answer(id) {
      for (;;) {
        const found = answers.find((each) => each.id === id && each.method === undefined);
        if (found) return found;
        if (child.exitCode !== null) throw new Error(`it ended without an answer to ${id}: ${await stderr}`);
        await Promise.race([told.promise, child.exited]);
      }
    },
    kill: (signal) => child.kill(signal),
    end: () => void child.stdin.end(),
    async ended() {
      await Promise.all([child.exited, reading]);
      return { code: child.signalCode === null ? child.exitCode : null, answers, stderr: await stderr };
    },
  };
}
