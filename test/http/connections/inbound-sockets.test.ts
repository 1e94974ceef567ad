import { expect, test } from "bun:test";
import { connect } from "node:net";
import { addressKey, openInboundSockets } from "../../../src/http/connections/inbound-sockets.ts";

const system = openInboundSockets();

async function client(port: number, host: string) {
  const socket = connect(port, host);
  const closed = Promise.withResolvers<void>();
  socket.on("close", () => closed.resolve());
  socket.on("error", () => {});
  socket.on("data", () => {});
  await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
  return { socket, closed: closed.promise, port: socket.localPort ?? 0 };
}

test.each([
  ["127.0.0.1", "127.0.0.1", "127.0.0.1"],
  ["an IPv6 address", "::1", "::1"],
  ["every address, by an IPv4 client", "::", "127.0.0.1"],
])(
  "connections of a server that listens on %s are found, and one of them is ended",
  async (_, hostname, host) => {
    using server = Bun.serve({ port: 0, hostname, fetch: () => new Response("ok") });
    const port = server.port ?? 0;
    const [stays, goes] = await Promise.all([client(port, host), client(port, host)]);
    // The server accepts a connection only once it has sent something.
    for (const { socket } of [stays, goes]) socket.write("GET / HTTP/1.1\r\nHost: ");
    let found = system?.list(port) ?? [];
    while (found.length < 2) {
      await Bun.sleep(1);
      found = system?.list(port) ?? [];
    }
    expect(found.map(({ port }) => port).toSorted()).toEqual([stays.port, goes.port].toSorted());
    expect(new Set(found.map(({ address }) => address))).toEqual(new Set([addressKey(host)]));

    const ended = found.find(({ port }) => port === goes.port);
    if (ended) system?.end(ended);
    await goes.closed;
    stays.socket.write("x\r\n\r\n");
    const { promise: answered, resolve } = Promise.withResolvers<void>();
    stays.socket.on("data", () => resolve());
    await answered;
    stays.socket.destroy();
  },
);

test("this process's outgoing connections are not mistaken for clients'", async () => {
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("ok") });
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const { promise: ending, resolve: end } = Promise.withResolvers<void>();
  using slow = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch() {
      resolve();
      await ending;
      return new Response("ok");
    },
  });
  const answer = fetch(slow.url);
  await asked;
  expect(system?.list(server.port ?? 0)).toEqual([]);
  // Only one of the two ends: the one that the server accepted.
  expect(system?.list(slow.port ?? 0)).toHaveLength(1);
  end();
  expect((await answer).status).toBe(200);
});
