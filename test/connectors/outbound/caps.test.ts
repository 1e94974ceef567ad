import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { capBody } from "../../../src/base/capped-body.ts";
import { Inflow } from "../../../src/base/inflow.ts";
import { createMask } from "../../../src/base/masking/mask.ts";
import { LargeDocuments } from "../../../src/connectors/openapi/large-documents.ts";
import { readApi } from "../../../src/connectors/openapi/reading/read-api.ts";
import { openApiSource } from "../../../src/connectors/openapi/source.ts";
import { readCapped } from "../../../src/connectors/outbound/read.ts";
import { FakeClock } from "../../support/clock.ts";
import { type TestOutbound, testOutbound } from "../../support/outbound.ts";
import { faultOf } from "./support.ts";

const capStream = (given: Response, bytes: number): Response => {
  const refuse = () => new Error("past the cap");
  return capBody(given, {
    bytes,
    tooLarge: refuse,
    jsonTooLarge: refuse,
    inflow: new Inflow(new FakeClock(), 1),
  });
};

const MOST = 96;
const MOST_STREAMS = 64;
const MOST_TO_ONE = 48;

/** Answers at once, or as the paths `/hang`, `/stream`, `/large`, `/redirect`, `/away` and `/empty` indicate. */
function startServer(): Bun.Server<undefined> {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch(request) {
      switch (new URL(request.url).pathname) {
        case "/hang":
          return new Promise<Response>(() => {});
        case "/stream":
          return new Response(
            new ReadableStream({
              start: (controller) => controller.enqueue(new TextEncoder().encode(": here\n\n")),
            }),
            { headers: { "content-type": "text/event-stream" } },
          );
        case "/large":
          return new Response(new Uint8Array(300_000));
        case "/redirect":
          return new Response("moved", { status: 302, headers: { location: "/here" } });
        case "/away":
          return new Response("moved", { status: 302, headers: { location: "http://other.example/" } });
        case "/empty":
          return new Response(null, { status: 204 });
        default:
          return new Response("here");
      }
    },
  });
}

/** Answers each request with these bytes and closes the connection. */
function startSocket(bytes: string): Bun.TCPSocketListener<undefined> {
  return Bun.listen({
    port: 0,
    hostname: "127.0.0.1",
    socket: { data: (socket) => void socket.end(bytes) },
  });
}

let outbound: TestOutbound;
let server: Bun.Server<undefined>;
let other: Bun.Server<undefined>;
const at = (path: string, which = server) => `http://127.0.0.1:${which.port}${path}`;

beforeEach(() => {
  outbound = testOutbound();
  server = startServer();
  other = startServer();
});

afterEach(async () => {
  outbound.close();
  await server.stop(true);
  await other.stop(true);
});

describe("beyond the limit of requests in flight, nothing is sent", () => {
  test("to a server that hangs; other servers, and requests outside connectors, continue", async () => {
    const giveUp = new AbortController();
    const { signal } = giveUp;
    const calls = Array.from({ length: 300 }, () => faultOf(outbound.fetchFor(1)(at("/hang"), { signal })));
    const refused = calls.slice(MOST_TO_ONE);
    expect(new Set((await Promise.all(refused)).map(String))).toEqual(
      new Set([
        `unavailable,Nothing was sent: 48 requests to http://127.0.0.1:${server.port} are already in flight. Try again later.`,
      ]),
    );
    expect(outbound.out).toEqual({ requests: MOST_TO_ONE, streams: 0 });
    expect(await (await outbound.fetch(at("/", other))).text()).toBe("here");
    expect(await (await fetch(at("/"))).text()).toBe("here");
    giveUp.abort();
    await Promise.all(calls);
    expect(outbound.out.requests).toBe(0);
    expect(await (await outbound.fetch(at("/"))).text()).toBe("here");
  });

  test("in total; a plain fetch to the same servers continues", async () => {
    const third = startServer();
    const giveUp = new AbortController();
    const { signal } = giveUp;
    const calls = [server, other, third].flatMap((each) =>
      Array.from({ length: MOST_TO_ONE }, () => faultOf(outbound.fetch(at("/hang", each), { signal }))),
    );
    expect((await Promise.all(calls.slice(MOST)))[0]).toEqual([
      "unavailable",
      "Nothing was sent: connectors already have 96 requests in flight. Try again later.",
    ]);
    expect(outbound.out.requests).toBe(MOST);
    expect(await (await fetch(at("/", third))).text()).toBe("here");
    giveUp.abort();
    await Promise.all(calls);
    expect(outbound.out.requests).toBe(0);
    await third.stop(true);
  });

  test("of one workspace; another one's connectors continue, as do streams", async () => {
    const third = startServer();
    const giveUp = new AbortController();
    const { signal } = giveUp;
    const hog = outbound.fetchFor(1);
    const calls = [server, other, third].flatMap((each) =>
      Array.from({ length: MOST_TO_ONE }, () => faultOf(hog(at("/hang", each), { signal }))),
    );
    const streams = Array.from({ length: MOST_STREAMS }, () => hog(at("/stream"), { signal, lasts: true }));
    const opened = await Promise.allSettled(streams);
    expect((await Promise.all(calls.slice(72)))[0]).toEqual([
      "unavailable",
      "Nothing was sent: the workspace's connectors already have their share of requests in flight. Try again later.",
    ]);
    expect(outbound.out).toEqual({ requests: 72, streams: 48 });
    const neighbour = outbound.fetchFor(2);
    expect(await (await neighbour(at("/"))).text()).toBe("here");
    const stream = await neighbour(at("/stream"), { lasts: true });
    expect(stream.status).toBe(200);
    await stream.body?.cancel();
    giveUp.abort();
    await Promise.all(calls);
    expect(opened.filter(({ status }) => status === "fulfilled")).toHaveLength(48);
    expect(outbound.out).toEqual({ requests: 0, streams: 0 });
    await third.stop(true);
  });

  test("if it would be one stream too many; requests are not affected", async () => {
    const giveUp = new AbortController();
    const { signal } = giveUp;
    const open = await Promise.all(
      Array.from({ length: MOST_STREAMS }, () => outbound.fetch(at("/stream"), { signal, lasts: true })),
    );
    expect(await faultOf(outbound.fetch(at("/stream"), { signal, lasts: true }))).toEqual([
      "unavailable",
      "Nothing was sent: connectors already have 64 streams open. Try again later.",
    ]);
    expect(await (await outbound.fetch(at("/"))).text()).toBe("here");
    await open[0]?.body?.cancel();
    expect(outbound.out).toEqual({ requests: 0, streams: MOST_STREAMS - 1 });
    giveUp.abort();
    expect(outbound.out.streams).toBe(0);
  });

  test("for an HTTP API, and the error names the connector", async () => {
    const spec = {
      openapi: "3.1.0",
      info: { title: "t", version: "1" },
      paths: { "/hang": { get: { operationId: "wait", responses: {} } } },
    };
    const source = openApiSource(
      { name: "slow" },
      { kind: "openapi", baseUrl: at(""), auth: null },
      {
        fetch: outbound.fetchFor(1),
        secrets: [],
        mask: createMask([]),
        clock: new FakeClock(),
        documentMemory: () => new LargeDocuments().begin(1),
        readSpec: async () => JSON.stringify(spec),
        readApi: (request) => readApi(request),
        pinOrigin: async () => {},
        timeoutMs: 1_000,
      },
    );
    const [tool] = await source.list(new AbortController().signal);
    if (!tool) throw new Error("it has one operation");
    const call = () =>
      faultOf(source.call(tool, {}, { signal: new AbortController().signal, callId: "call_1" }));
    const calls = Array.from({ length: 300 }, call);
    expect((await Promise.all(calls.slice(MOST_TO_ONE)))[0]).toEqual([
      "unavailable",
      `The connector slow: Nothing was sent: 48 requests to http://127.0.0.1:${server.port} are already in flight. Try again later.`,
    ]);
    await source.close();
    await Promise.all(calls);
    expect(outbound.out.requests).toBe(0);
  });
});

describe("a slot is freed", () => {
  test("by a request that was refused, redirected away, or never connected", async () => {
    const closed = startServer();
    const { port } = closed;
    await closed.stop(true);
    expect((await faultOf(outbound.fetch(at("/away"))))[0]).toBe("refused");
    expect((await faultOf(outbound.fetch(`http://127.0.0.1:${port}/`)))[0]).toBe("no ConnectorError");
    expect((await faultOf(outbound.fetch("http://169.254.169.254/")))[0]).toBe("forbidden_address");
    expect(outbound.out).toEqual({ requests: 0, streams: 0 });
  });

  test("by a status that no Response can have", async () => {
    const odd = startSocket("HTTP/1.1 999 No\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno");
    const [fault] = await faultOf(outbound.fetch(`http://127.0.0.1:${odd.port}/`));
    expect(fault).toBe("refused");
    expect(outbound.out.requests).toBe(0);
    odd.stop(true);
  });

  test("by answers that were dropped unread, once their memory is collected", async () => {
    const drop = async () => {
      for (let each = 0; each < 40; each++) await outbound.fetch(at("/large"));
    };
    await drop();
    // A conservative stack scan may keep the last ones alive.
    while (outbound.out.requests > 20) {
      Bun.gc(true);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await (await outbound.fetch(at("/"))).text()).toBe("here");
  });

  /** Ways in which an answer can end. */
  const ENDS = {
    text: async (response: Response) => void (await response.text()),
    cancel: async (response: Response) => void (await response.body?.cancel()),
    readCapped: async (response: Response) => void (await readCapped(response, 1_000)),
    capStream: async (response: Response) => {
      const reader = capStream(response, 1_000).body?.getReader();
      await reader?.read();
      await reader?.cancel();
    },
    abort: async (_response: Response, giveUp: AbortController) => giveUp.abort(),
    abortWhileReading: async (response: Response, giveUp: AbortController) => {
      const reading = response.text();
      giveUp.abort();
      await reading;
    },
    cancelThenAbort: async (response: Response, giveUp: AbortController) => {
      const cancelled = response.body?.cancel();
      giveUp.abort();
      await cancelled;
    },
  };

  test("whatever happens to answers, in any order", async () => {
    const path = fc.constantFrom(
      "/",
      "/large",
      "/redirect",
      "/empty",
      "/broken",
      "/away",
      "/stream",
      "/hang",
    );
    const end = fc.constantFrom(...(Object.keys(ENDS) as (keyof typeof ENDS)[]));
    const request = fc.record({ path, end, early: fc.boolean(), lasts: fc.boolean() });
    const breaking = startSocket("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegun\r\n");
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 12 }), async (requests) => {
        await Promise.all(
          requests.map(async ({ path, end, early, lasts }) => {
            const giveUp = new AbortController();
            const url = path === "/broken" ? `http://127.0.0.1:${breaking.port}/` : at(path);
            const asked = outbound.fetch(url, { signal: giveUp.signal, lasts });
            // A request that never ends by itself is aborted or cancelled.
            if (early || path === "/hang") giveUp.abort();
            try {
              const endless = path === "/stream" && (end === "text" || end === "readCapped");
              await ENDS[endless ? "cancel" : end](await asked, giveUp);
            } catch {
              // The request may break, be refused or be aborted. All that matters is that none stays in flight.
            }
          }),
        );
        expect(outbound.out).toEqual({ requests: 0, streams: 0 });
      }),
      { numRuns: 60 },
    );
    breaking.stop(true);
  });
});
