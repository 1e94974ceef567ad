import {
  type ProcessOptions,
  type Ran,
  run,
  type ServerProcess,
  serve,
  tempDir,
} from "../support/process.ts";

/** An empty folder for running the command line, as for somebody who has just unpacked it. */
export interface Desk {
  readonly cwd: string;
  cli(args: readonly string[], env?: Record<string, string>): Promise<Ran>;
  /** Runs a command that must succeed, and returns its output. */
  out(args: readonly string[], env?: Record<string, string>): Promise<string>;
  serve(args?: readonly string[], env?: Record<string, string>): Promise<ServerProcess>;
  /** Calls a running server. */
  call(server: ServerProcess, token: string, method: string, path: string, body?: object): Promise<Response>;
  clear(): Promise<void>;
}

export function openDesk(options: Omit<ProcessOptions, "cwd"> = {}): Desk {
  const directory = tempDir();
  const servers: ServerProcess[] = [];
  const within = (env?: Record<string, string>): ProcessOptions => ({
    ...options,
    cwd: directory.path,
    env: { ...options.env, ...env },
  });
  const cli = (args: readonly string[], env?: Record<string, string>) => run(args, within(env));
  return {
    cwd: directory.path,
    cli,
    async out(args, env) {
      const ran = await cli(args, env);
      if (ran.code !== 0)
        throw new Error(`gatehouse ${args.join(" ")} ended with ${ran.code}: ${ran.stderr}`);
      return ran.stdout;
    },
    async serve(args = [], env) {
      const server = await serve(args, within(env));
      servers.push(server);
      return server;
    },
    call: (server, token, method, path, body) =>
      fetch(server.url + path, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    async clear() {
      for (const server of servers) await server.end("SIGKILL");
      directory.remove();
    },
  };
}

export const SECRET = /^gth_[0-9A-Za-z]{49}$/;
export const AGENT = { name: "helper", owner: "tests", memory_scope: "support" };
