/** The suite sends no credentials. This proxy between it and the server adds them. */
export interface Proxy {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * Passes on every request unchanged, including Host and Origin, except that it adds the token. Streams in both
 * directions.
 */
export function startProxy(target: string, token: string): Proxy {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      headers.set("authorization", `Bearer ${token}`);
      return fetch(target + pathname + search, {
        method: request.method,
        headers,
        body: request.body,
        signal: request.signal,
        redirect: "manual",
        decompress: false,
        proxy: false,
      });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    stop: () => server.stop(true),
  };
}
