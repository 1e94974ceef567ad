import type { Config } from "../../config/config.ts";
import { isLoopback, listenUrl } from "../../config/listen.ts";
import { readRuntime } from "../../store/runtime.ts";
import { isAnswering, isInUse } from "../operator.ts";
import { type Finding, fail, ok, warn } from "./finding.ts";

const READY_MS = 5_000;

/** The server that runs on the data directory; without one, whether one could listen. */
export async function checkServer(
  config: Pick<Config, "dataDir" | "listen" | "publicUrl">,
): Promise<Finding[]> {
  return [...exposure(config), await checkRunning(config)];
}

async function checkRunning({ dataDir, listen }: Pick<Config, "dataDir" | "listen">): Promise<Finding> {
  const runtime = readRuntime(dataDir);
  if (!runtime || !isUsed(dataDir)) return checkPort(listen);
  if (!(await isAnswering(runtime.url))) {
    return fail(
      "server",
      `the process ${runtime.pid} uses the data directory, but does not answer at ${runtime.url}`,
      "look at its log, and restart it if it hangs",
    );
  }
  return readiness(runtime.url);
}

function isUsed(dataDir: string): boolean {
  try {
    return isInUse(dataDir);
  } catch {
    // The directory cannot be written, which another check reports.
    return false;
  }
}

async function readiness(url: string): Promise<Finding> {
  try {
    const answer = await fetch(`${url}/readyz`, { proxy: false, signal: AbortSignal.timeout(READY_MS) });
    if (answer.ok) return ok("server", `a server answers at ${url}, and is ready`);
    const { failing } = (await answer.json()) as { failing?: readonly string[] };
    return fail(
      "server",
      `the server at ${url} is not ready: ${(failing ?? []).join(", ")}`,
      "look at its log: until this passes, calls are refused",
    );
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return fail(
      "server",
      `the server at ${url} does not tell whether it is ready (${why})`,
      "look at its log",
    );
  }
}

function checkPort(listen: Config["listen"]): Finding {
  const url = listenUrl(listen);
  try {
    const { host: hostname, port } = listen;
    Bun.listen({ hostname, port, exclusive: true, socket: { data() {} } }).stop(true);
    return ok("server", `none is running; ${url} is free`);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    return fail(
      "server",
      `none is running, and a server could not listen at ${url}: ${REASONS[code] ?? code}`,
      "end that program, or set another address with --listen",
    );
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program does",
  EACCES: "this user may not use that port",
  EADDRNOTAVAIL: "this machine does not have that address",
};

function exposure({ listen, publicUrl }: Pick<Config, "listen" | "publicUrl">): Finding[] {
  if (isLoopback(listen.host) || publicUrl?.startsWith("https:")) return [];
  return [
    warn(
      "address",
      `${listenUrl(listen)} can be reached from other machines without TLS, so tokens can be read on the way`,
      "listen on 127.0.0.1 behind a proxy that has TLS, and set public_url to its https address",
    ),
  ];
}
