/** The address that the server listens on. `host` has no brackets; port 0 means any free port. */
export interface Listen {
  readonly host: string;
  readonly port: number;
}

const ADDRESS =
  /^(?:\[(?<six>[0-9A-Fa-f:.]+(?:%[0-9A-Za-z]+)?)\]|(?<host>[0-9A-Za-z](?:[0-9A-Za-z.-]*[0-9A-Za-z])?)):(?<port>\d{1,5})$/;

/** Reads `HOST:PORT` or `[IPv6]:PORT`; undefined for anything else. */
export function parseListen(text: string): Listen | undefined {
  const groups = ADDRESS.exec(text)?.groups;
  if (!groups) return undefined;
  const host = groups.six ?? groups.host;
  const port = Number(groups.port);
  if (host === undefined || port > 65_535) return undefined;
  if (groups.six !== undefined && !host.includes(":")) return undefined;
  return { host, port };
}

/**
 * The address at which a client on this machine reaches the server, for use without `public_url`. If the server
 * listens on all addresses, this is its loopback address.
 */
export function listenUrl({ host, port }: Listen): string {
  if (host === "0.0.0.0") return `http://127.0.0.1:${port}`;
  if (host === "::") return `http://[::1]:${port}`;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Whether only this machine can reach a server that listens on this host. */
export function isLoopback(host: string): boolean {
  return /^127(?:\.\d{1,3}){3}$/.test(host) || host === "::1" || host.toLowerCase() === "localhost";
}
