import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { FakeClock } from "../../support/clock.ts";
import { type FakeMcp, type FakeMcpOptions, startFakeMcp } from "../../support/fake-mcp/http.ts";
import { type TestOutbound, testOutbound } from "../../support/outbound.ts";
import { faultOf, type Given, type Opened, open, textOf } from "./support.ts";

const MOST_STREAMS = 64;
const MOST_OUT = 40;

let outbound: TestOutbound;
let opened: AsyncDisposable[];
beforeEach(() => {
  outbound = testOutbound();
  opened = [];
});

afterEach(async () => {
  for (const each of opened.reverse()) await each[Symbol.asyncDispose]();
  outbound.close();
});

function serve(options: FakeMcpOptions = {}): FakeMcp {
  const fake = startFakeMcp(options);
  opened.push({ [Symbol.asyncDispose]: () => fake.close() });
  return fake;
}

/** A connector that shares its requests with all other connectors of this file. */
function connect(type: "http" | "sse", fake: FakeMcp, given: Given = {}): Opened {
  const url = type === "http" ? fake.url : fake.sseUrl;
  const up = open({ type, url, headers: {} }, { fetch: outbound.fetch, ...given });
  opened.push(up);
  return up;
}

/** An aborted request ends a few turns later. */
async function untilOut(requests: number): Promise<void> {
  while (outbound.out.requests !== requests) await new Promise((resolve) => setImmediate(resolve));
}

/**
 * Opens all streams that connectors may have.
 * @returns a function that closes them
 */
async function takeAllStreams(): Promise<() => void> {
  const fake = serve();
  const giveUp = new AbortController();
  const init = { signal: giveUp.signal, lasts: true };
  const streams = await Promise.all(
    Array.from({ length: MOST_STREAMS }, () => outbound.fetch(fake.sseUrl, init)),
  );
  // Keep references until then, because a stream that nobody can read any more is closed.
  return () => {
    giveUp.abort();
    streams.length = 0;
  };
}

describe.each(["http", "sse"] as const)("a server that hangs, over %s", (type) => {
  test("keeps its share of requests; the other calls fail at once, and other servers are asked", async () => {
    const hanging = serve({
      fault: ({ method }) => (method === "tools/call" ? { kind: "hang" } : undefined),
    });
    const up = connect(type, hanging);
    await up.list();
    const caller = new AbortController();
    const calls = Array.from({ length: 300 }, () => faultOf(up.call("echo", {}, { signal: caller.signal })));
    expect(new Set(await Promise.all(calls.slice(MOST_OUT)))).toEqual(
      new Set(["unavailable: The connector up already has 40 calls in flight. Try again later."]),
    );
    expect(textOf(await connect(type, serve()).call("echo", { text: "hi" }))).toBe("hi");
    expect((await fetch(hanging.url)).status).toBe(404);
    caller.abort();
    await Promise.all(calls);
  });

  test("is notified of each cancelled call, and frees its slots", async () => {
    let cancelled = 0;
    let asked = 0;
    const allAsked = Promise.withResolvers<void>();
    const allCancelled = Promise.withResolvers<void>();
    const hanging = serve({
      fault({ method }) {
        if (method === "tools/call") {
          asked += 1;
          if (asked === MOST_OUT) allAsked.resolve();
          return { kind: "hang" };
        }
        if (method === "notifications/cancelled") cancelled += 1;
        if (cancelled === MOST_OUT) allCancelled.resolve();
        return undefined;
      },
    });
    const clock = new FakeClock();
    const up = connect(type, hanging, { clock });
    await up.list();
    const caller = new AbortController();
    const calls = Array.from({ length: MOST_OUT }, () =>
      faultOf(up.call("echo", {}, { signal: caller.signal })),
    );
    await allAsked.promise;
    caller.abort();
    await Promise.all(calls);
    await allCancelled.promise;
    clock.advance(1_000);
    await up.source.close();
    await untilOut(0);
    expect(outbound.out.streams).toBe(0);
  });

  test("does not keep notifications that it does not read", async () => {
    const asked = Promise.withResolvers<void>();
    const told = Promise.withResolvers<void>();
    const hanging = serve({
      fault({ method }) {
        if (method === "tools/call") asked.resolve();
        else if (method !== "notifications/cancelled") return undefined;
        else told.resolve();
        return { kind: "hang" };
      },
    });
    const clock = new FakeClock();
    const up = connect(type, hanging, { clock });
    await up.list();
    const caller = new AbortController();
    const call = faultOf(up.call("echo", {}, { signal: caller.signal }));
    await asked.promise;
    caller.abort();
    await call;
    await told.promise;
    clock.advance(1_000);
    await untilOut(1);
    clock.advance(30_000);
    await untilOut(0);
  });
});

describe("when connectors have too many open streams", () => {
  test("Streamable HTTP works without a stream until there is room", async () => {
    const giveBack = await takeAllStreams();
    const listened = Promise.withResolvers<void>();
    const fake = serve();
    const clock = new FakeClock();
    const fetch: TestOutbound["fetch"] = async (url, init) => {
      const response = await outbound.fetch(url, init);
      if (init?.lasts) listened.resolve();
      return response;
    };
    const up = connect("http", fake, { clock, fetch });
    expect(textOf(await up.call("echo", { text: "hi" }))).toBe("hi");
    expect(fake.heard).not.toContain("GET");
    giveBack();
    clock.advance(30_000);
    await listened.promise;
    expect(fake.heard).toContain("GET");
    expect(outbound.out.streams).toBe(1);
  });

  test("the older HTTP+SSE fails without blaming its server, and is tried again with the next call", async () => {
    const giveBack = await takeAllStreams();
    const up = connect("sse", serve());
    const words =
      "unavailable: The connector up: Nothing was sent: connectors already have 64 streams open. Try again later.";
    expect(await faultOf(up.list())).toBe(words);
    expect(await faultOf(up.call("echo"))).toBe(words);
    giveBack();
    expect(textOf(await up.call("echo", { text: "hi" }))).toBe("hi");
  });
});
