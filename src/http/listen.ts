import type { Clock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import type { Ids } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import type { App } from "./app.ts";
import { endsWork, isCall, noRoom } from "./connections/admission.ts";
import { ConnectionGuard } from "./connections/guard.ts";
import type { OpenCalls } from "./connections/open-calls.ts";
import type { ConnectionPlan } from "./connections/plan.ts";
import type { Metrics } from "./metrics.ts";

/**
 * Body size at which Bun itself refuses with a bare 413. Set out of reach, so each endpoint enforces its own limit
 * and responds with a problem. Bun buffers nothing of a body that no handler reads (ten bodies of 100 MiB took 6 MiB
 * more memory).
 */
const SERVER_BODY_LIMIT = 1024 ** 4;
/** Idle timeout in seconds, without a byte in either direction, for everything except streams. */
export const IDLE_SECONDS = 60;
/** How long a stop waits for finished calls whose responses are not fully sent. */
const CLOSE_WAIT_MS = 3_000;
const CLOSE_STEP_MS = 10;

export interface Listener {
  readonly port: number;
  /** The server's address, as reachable from this machine. */
  readonly url: string;
  /** Keeps the number of connections below the limit; null if the system has no limit or does not report it. */
  readonly connections: ConnectionGuard | null;
  /** Stops accepting connections. */
  refuse(): void;
  /** Waits briefly for responses being sent, then closes all connections. */
  close(): Promise<void>;
}

export interface ListenerParts {
  readonly plan: ConnectionPlan | null;
  readonly calls: OpenCalls;
  readonly metrics: Pick<Metrics, "answered" | "callsWithoutRoom" | "connectionsClosed">;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Log;
}

/** @throws OperatorError if it cannot listen on the address */
export function listen(
  app: App,
  address: { readonly host: string; readonly port: number },
  { plan, calls, metrics, ids, clock, log }: ListenerParts,
): Listener {
  let connections: ConnectionGuard | null = null;
  const refuse = () => {
    metrics.answered["4xx"].inc();
    metrics.callsWithoutRoom.inc();
    return noRoom(ids);
  };
  // Elysia asks once per request which function answers it.
  app.wrap((answer, request) => {
    if (connections === null || !isCall(request.url)) return answer;
    return connections.admit(request, endsWork(request.url)) ? answer : refuse;
  });
  try {
    app.listen({
      hostname: address.host,
      port: address.port,
      // A second process must not silently share the port, which is Elysia's default.
      reusePort: false,
      idleTimeout: IDLE_SECONDS,
      maxRequestBodySize: SERVER_BODY_LIMIT,
      development: false,
    });
  } catch (error) {
    throw new OperatorError(
      `cannot listen on ${address.host}:${address.port}: ${error instanceof Error ? error.message : String(error)}`,
      "choose another address with --listen",
    );
  }
  const server = app.server;
  if (!server?.port) throw new Error("the server did not start");
  connections =
    plan &&
    new ConnectionGuard({ server, plan, calls, clock, log, closed: (n) => metrics.connectionsClosed.inc(n) });
  return {
    connections,
    port: server.port,
    url: `http://${localHost(address.host)}:${server.port}`,
    refuse: () => void server.stop(false),
    async close() {
      for (let waited = 0; server.pendingRequests > 0 && waited < CLOSE_WAIT_MS; waited += CLOSE_STEP_MS) {
        await new Promise((resolve) => setTimeout(resolve, CLOSE_STEP_MS));
      }
      await server.stop(true);
      connections?.stop();
    },
  };
}

function localHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
