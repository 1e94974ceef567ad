import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Clock } from "../base/clock.ts";

const TIMEOUT_MS = 5_000;

/**
 * Opens a connection to a URL's host, checks the certificate if the URL is HTTPS, and closes the connection. Sends no
 * request, so it costs nothing and uses no credentials.
 * @returns null on success; otherwise the reason, which contains no part of the URL except its host
 */
export function whyUnreachable(
  url: string,
  clock: Clock,
  timeoutMs: number = TIMEOUT_MS,
): Promise<string | null> {
  const { protocol, hostname, port } = new URL(url);
  const isSecure = protocol === "https:";
  const host = hostname.replace(/^\[|\]$/g, "");
  const address = { host, port: Number(port) || (isSecure ? 443 : 80) };
  const { promise, resolve } = Promise.withResolvers<string | null>();
  // An IP address has no name for which to check the certificate.
  const name = /^[\d.]+$|:/.test(host) ? {} : { servername: host };
  const socket = isSecure
    ? connectTls({ ...address, ...name }, () => resolve(null))
    : connect(address, () => resolve(null));
  socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "the connection failed"));
  const cancel = clock.after(timeoutMs, () => resolve(`no connection within ${timeoutMs} ms`));
  return promise.finally(() => {
    cancel();
    socket.destroy();
  });
}
