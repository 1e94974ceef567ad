import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import { trimEndOf } from "../base/trim-end.ts";
import type { Config } from "../config/config.ts";
import { lookUp } from "../config/environment.ts";
import { readTextFile } from "../config/read-file.ts";
import type { Gateway } from "../gateway.ts";
import { readRuntime } from "../store/runtime.ts";
import { isAnswering, openUnlessInUse } from "./operator.ts";
import { type ConfigOptions, command, resolveConfig } from "./options.ts";

interface McpOptions extends ConfigOptions {
  readonly url?: string;
}

/** Path of the MCP endpoint. */
const PATH = "/mcp";
/** Another command may briefly hold the data directory, or a server may be starting. */
const CONNECT_TRIES = 50;
const CONNECT_WAIT_MS = 100;

const HELP = `
Uses the token in GATEHOUSE_TOKEN, or in the file that GATEHOUSE_TOKEN_FILE names. If no server runs on the
data directory, the gateway runs within this process until the input ends. Only one process at a time can use
a directory, so two clients need a server.

A client's configuration:

  {"mcpServers": {"gatehouse": {"command": "gatehouse", "args": ["mcp", "--data", "/srv/gatehouse"],
    "env": {"GATEHOUSE_TOKEN": "gth_…"}}}}`;

export function mcpCommand(): Command {
  return command("mcp", "serve MCP on standard input and output, for clients that start their servers")
    .option(
      "--url <url>",
      "the server to connect to (default: the one that uses the data directory, or GATEHOUSE_URL)",
    )
    .addHelpText("after", HELP)
    .action(mcp);
}

async function mcp(options: McpOptions): Promise<void> {
  const token = tokenOf(process.env);
  const given = options.url ?? process.env.GATEHOUSE_URL ?? "";
  const url = given === "" ? undefined : doorOf(given);
  const stopping = stopSignal();
  if (url) {
    await carry({ url, token, fetch }, stopping);
    return;
  }
  const { config } = await resolveConfig(options);
  const gateway = await openGatewayOrFindServer(config);
  if (!gateway) {
    await carry({ url: doorOf("http://localhost"), token, fetch: askRunning(config) }, stopping);
    return;
  }
  try {
    await gateway.work();
    await carry({ url: doorOf("http://localhost"), token, fetch: askWithin(gateway) }, stopping);
  } finally {
    await gateway.stop();
  }
}

type FetchFunction = (url: URL, init: RequestInit) => Promise<Response>;

async function carry(
  door: { readonly url: URL; readonly token: string; readonly fetch: FetchFunction },
  signal: AbortSignal,
): Promise<void> {
  const { bridge } = await import("../mcp/bridge.ts");
  await bridge({
    input: process.stdin,
    output: process.stdout,
    door,
    clock: systemClock,
    warn: (message) => process.stderr.write(`gatehouse: ${message}\n`),
    signal,
  });
  // Standard input may still be open and would keep the process alive.
  process.stdin.destroy();
}

/** Aborts on the first SIGTERM, SIGINT or SIGHUP; a second one ends the process at once. */
function stopSignal(): AbortSignal {
  const stopping = new AbortController();
  for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(name, () => {
      if (stopping.signal.aborted) process.exit(1);
      stopping.abort();
    });
  }
  return stopping.signal;
}

/**
 * Opens the gateway of the data directory in this process; null if a running server holds it. @throws OperatorError
 */
async function openGatewayOrFindServer(config: Config): Promise<Gateway | null> {
  for (let attempt = 1; attempt <= CONNECT_TRIES; attempt++) {
    const gateway = await openUnlessInUse(config);
    if (gateway) return gateway;
    const runtime = readRuntime(config.dataDir);
    if (runtime && (await isAnswering(runtime.url))) return null;
    await Bun.sleep(CONNECT_WAIT_MS);
  }
  throw new OperatorError(
    `another process uses the data directory ${config.dataDir} and does not answer`,
    "find that process, and stop it or wait for it; two clients need a server: gatehouse serve",
  );
}

/** Sends requests to the server running on the data directory. It may be replaced by one at another address. */
function askRunning(config: Config): FetchFunction {
  return async (url, init) => {
    const runtime = readRuntime(config.dataDir);
    if (!runtime) throw new Error(`no server runs on the data directory ${config.dataDir}`);
    // The server is on this machine: a proxy from the environment must not see the token.
    return fetch(new URL(url.pathname, runtime.url), { ...init, proxy: false });
  };
}

function askWithin(gateway: Gateway): FetchFunction {
  return (url, init) => {
    const headers = new Headers(init.headers);
    headers.set("host", url.host);
    return gateway.handle(new Request(String(url), { ...init, headers }));
  };
}

/** @throws OperatorError */
function doorOf(text: string): URL {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new OperatorError("--url (or GATEHOUSE_URL) must be an http:// or https:// URL", undefined, 2);
  }
  const base = trimEndOf(url.pathname, "/");
  url.pathname = base.endsWith(PATH) || base.endsWith(`${PATH}/sse`) ? base : base + PATH;
  return url;
}

/** @throws OperatorError if it is missing, or not valid in a header */
function tokenOf(env: Readonly<Record<string, string | undefined>>): string {
  const found = lookUp(env, readTextFile, "GATEHOUSE_TOKEN");
  if (found && "failure" in found) throw new OperatorError(`GATEHOUSE_TOKEN: ${found.failure}`, undefined, 2);
  const token = found?.value.trim() ?? "";
  if (token === "") {
    throw new OperatorError(
      "GATEHOUSE_TOKEN is not set",
      "create a token with: gatehouse token create --name NAME --agent AGENT",
      2,
    );
  }
  if (!/^[!-~]+$/.test(token)) throw new OperatorError("GATEHOUSE_TOKEN is not a token", undefined, 2);
  return token;
}
