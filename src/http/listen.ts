import { OperatorError } from "../base/errors.ts";
import type { App } from "./app.ts";

/**
 * Bytes of a body that Bun refuses by itself, with a bare 413: out of reach, so that each endpoint refuses by its own
 * limit and as a problem. Bun buffers nothing of a body that no handler reads (ten of 100 MiB each: 6 MiB more in memory).
 */
const SERVER_BODY_LIMIT = 1024 ** 4;
/** Seconds without a byte either way, for everything but streams. */
export const IDLE_SECONDS = 60;
/** How long a stop waits for calls whose work is done and whose answers are not sent yet. */
const CLOSE_WAIT_MS = 3_000;
const CLOSE_STEP_MS = 10;

export interface Listener {
  readonly port: number;
  /** The address as this machine reaches it. */
  readonly url: string;
  /** Takes no new connections. */
  refuse(): void;
  /** Waits a little for the answers that are on their way, then ends what is still open. */
  close(): Promise<void>;
}

/** @throws OperatorError when the address cannot be listened on */
export function listen(app: App, address: { readonly host: string; readonly port: number }): Listener {
  try {
    app.listen({
      hostname: address.host,
      port: address.port,
      // A second process must not share the port in silence, which is Elysia's default.
      reusePort: false,
      idleTimeout: IDLE_SECONDS,
      maxRequestBodySize: SERVER_BODY_LIMIT,
      development: false,
    });
  } catch (error) {
    throw new OperatorError(
      `cannot listen on ${address.host}:${address.port}: ${error instanceof Error ? error.message : String(error)}`,
      "name another address with --listen",
    );
  }
  const server = app.server;
  if (!server?.port) throw new Error("the server did not start");
  return {
    port: server.port,
    url: `http://${localHost(address.host)}:${server.port}`,
    refuse: () => void server.stop(false),
    async close() {
      for (let waited = 0; server.pendingRequests > 0 && waited < CLOSE_WAIT_MS; waited += CLOSE_STEP_MS) {
        await new Promise((resolve) => setTimeout(resolve, CLOSE_STEP_MS));
      }
      await server.stop(true);
    },
  };
}

function localHost(host: string): string {
  if (host === "0.0.0.0") return "127.0.0.1";
  if (host === "::") return "[::1]";
  return host.includes(":") ? `[${host}]` : host;
}
