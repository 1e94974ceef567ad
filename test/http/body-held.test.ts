/** Request bodies held back on real connections: who else is served, and what happens to the bodies. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { connect as connectMcp } from "../mcp/support.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ledger } from "../tasks/support.ts";

setDefaultTimeout(60_000);
const MIB = 1024 * 1024;

let gateway: TestGateway;
let clock: FakeClock;
let sockets: Socket[];
beforeEach(async () => {
  sockets = [];
  clock = new FakeClock();
  gateway = await startGateway({ clock });
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await gateway.stop();
});

interface HalfPost {
  readonly socket: Socket;
  /** Resolves when the bytes have been handed to the operating system. */
  readonly sent: Promise<void>;
  /** The whole answer, once the connection is closed. */
  readonly answer: Promise<string>;
  readonly seen: () => string;
}

/** Sends a head that announces `length` bytes, and then only these first bytes of the body. */
function postHalf(path: string, token: string, body: Uint8Array, length: number): HalfPost {
  const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
  sockets.push(socket);
  let text = "";
  socket.on("data", (data) => {
    text += data;
  });
  const closed = Promise.withResolvers<string>();
  socket.on("close", () => closed.resolve(text));
  // A reset also ends the connection.
  socket.on("error", () => closed.resolve(text));
  const head = [
    `POST ${path} HTTP/1.1`,
    `Host: ${new URL(gateway.url).host}`,
    `Authorization: Bearer ${token}`,
    "Content-Type: application/json",
    `Content-Length: ${length}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  const sent = new Promise<void>((resolve) => socket.write(body, () => resolve()));
  return { socket, sent, answer: closed.promise, seen: () => text };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const agent = (name: string) => ({ body: { name, owner: "o", memory_scope: "a" } });

test("one workspace's held bodies leave room for others, who are served as usual", async () => {
  const other = await gateway.workspace("other");
  const part = Buffer.alloc(9 * MIB, " ");
  // 288 MiB, although the server has 256 MiB for all bodies.
  const hog = Array.from({ length: 32 }, () => postHalf("/v1/agents", gateway.admin, part, 10 * MIB));
  // Each is either held completely or refused; some of the hog's exceed its share.
  await Promise.all(hog.map(({ sent, answer }) => Promise.race([sent, answer])));
  while (!hog.some(({ seen }) => seen() !== "")) await turn();
  for (const name of ["one", "two", "three"]) {
    const raw = JSON.stringify({ ...agent(name).body, description: "x".repeat(1_000) });
    expect((await gateway.call("POST", "/v1/agents", { token: other, raw })).status).toBe(201);
  }
  const large = { ...agent("large").body, instructions: "x".repeat(5 * MIB) };
  // Too long for the field. What matters is that the body was read.
  expect((await gateway.call("POST", "/v1/agents", { token: other, body: large })).status).toBe(422);
  const refused = hog.filter(({ seen }) => seen() !== "");
  expect(refused.length).toBeGreaterThan(0);
  for (const { seen } of refused) {
    expect(seen()).toStartWith("HTTP/1.1 429");
    expect(seen()).toMatch(/retry-after: 1\r\n/i);
  }
});

describe("a body that trickles", () => {
  test.each([
    ["a small one", "/v1/agents", 10, 200],
    ["a large one", "/v1/agents", 10, 5 * MIB],
    ["a document", "/v1/vault/documents", 100_000, 20 * MIB],
    ["an MCP message", "/mcp", 10, 5 * MIB],
  ])("%s is abandoned, and its connection closed", async (_name, path, bytes, length) => {
    const slow = postHalf(path, gateway.admin, Buffer.alloc(bytes, " "), length);
    let isClosed = false;
    void slow.answer.then(() => {
      isClosed = true;
    });
    for (let seconds = 0; !isClosed && seconds < 100_000; seconds++) {
      clock.advance(1_000);
      await turn();
    }
    expect(await slow.answer).toStartWith("HTTP/1.1 400");
    expect(await slow.answer).toContain("The body arrived too slowly");
    const entries = (await ledger(gateway)).filter(({ code }) => code === "invalid_json");
    expect(entries).toMatchObject([{ outcome: "denied" }]);
  });
});

describe("a client that leaves in the middle of its body", () => {
  const LEAVES: readonly [string, (socket: Socket) => void][] = [
    ["closes", (socket) => void socket.destroy()],
    ["resets", (socket) => void socket.resetAndDestroy()],
    ["ends what it sends", (socket) => void socket.end()],
  ];
  const cancelled = async () =>
    (await ledger(gateway))
      .filter(({ code }) => code === "client_closed")
      .map(({ outcome, action }) => [action, outcome]);
  const failures = async () => {
    const metrics: string = (await gateway.call("GET", "/metrics")).body;
    return /gatehouse_http_requests_total\{status="5xx"\} (\d+)/.exec(metrics)?.[1] ?? "0";
  };

  test.each(LEAVES)(
    "and %s is recorded as cancelled, and is not a fault of the server",
    async (_name, leave) => {
      for (const length of [1_000, 5 * MIB]) {
        const { socket, sent } = postHalf("/v1/agents", gateway.admin, Buffer.from("{"), length);
        await sent;
        // By now the server has read the head.
        await gateway.call("GET", "/v1/agents");
        leave(socket);
      }
      while ((await cancelled()).length < 2) await turn();
      expect(await cancelled()).toEqual([
        ["agent.create", "cancelled"],
        ["agent.create", "cancelled"],
      ]);
      expect(await failures()).toBe("0");
    },
  );

  test("also over MCP", async () => {
    await connectMcp(gateway);
    const { socket, sent } = postHalf("/mcp", gateway.admin, Buffer.from("{"), 1_000);
    await sent;
    await gateway.call("GET", "/v1/agents");
    socket.destroy();
    while ((await cancelled()).length < 1) await turn();
    expect(await cancelled()).toEqual([["session.use", "cancelled"]]);
    expect(await failures()).toBe("0");
  });

  test("an unknown caller's body is not waited for", async () => {
    const { answer, socket } = postHalf("/v1/agents", "gth_nobody", Buffer.from("{"), 5 * MIB);
    socket.once("data", () => socket.end());
    expect(await answer).toStartWith("HTTP/1.1 401");
  });
});
