import { describe, expect, test } from "bun:test";
import { FakeClock } from "../../support/clock.ts";
import { type FakeMcp, type Fault, startFakeMcp } from "../../support/fake-mcp/http.ts";
import { faultOf, type Opened, open, textOf } from "./support.ts";

const TIMEOUT_MS = 60_000;

interface World extends AsyncDisposable {
  readonly fake: FakeMcp;
  readonly up: Opened;
  readonly clock: FakeClock;
  /** Sets the fault that tool calls have from now on. */
  inCalls(fault: Fault | undefined): void;
  /** Sets the fault of handshakes from now on. */
  inHandshakes(fault: Fault | undefined): void;
  /** Resolves when the upstream receives the next message of this method. */
  next(method: string): Promise<void>;
}

/** A real upstream and a stopped clock. */
function world(): World {
  const clock = new FakeClock();
  const faults = new Map<string, Fault | undefined>();
  const waiting = new Map<string, () => void>();
  const fake = startFakeMcp({
    fault: ({ method = "" }) => {
      waiting.get(method)?.();
      return faults.get(method);
    },
  });
  const up = open({ type: "http", url: fake.url, headers: {} }, { clock, timeoutMs: TIMEOUT_MS });
  return {
    fake,
    up,
    clock,
    inCalls: (fault) => void faults.set("tools/call", fault),
    inHandshakes: (fault) => void faults.set("initialize", fault),
    next: (method) => new Promise((resolve) => void waiting.set(method, resolve)),
    async [Symbol.asyncDispose]() {
      await up[Symbol.asyncDispose]();
      await fake.close();
    },
  };
}

/** Makes one call that the upstream receives and does not answer. */
async function timedOut({ up, clock, next }: World): Promise<string> {
  const arrived = next("tools/call");
  const fault = faultOf(up.call("echo"));
  await arrived;
  clock.advance(TIMEOUT_MS);
  return fault;
}

describe("time runs out", () => {
  test("for a handshake after 10 s", async () => {
    await using w = world();
    w.inHandshakes({ kind: "hang" });
    const arrived = w.next("initialize");
    const fault = faultOf(w.up.list());
    await arrived;
    w.clock.advance(10_000);
    expect(await fault).toBe("timeout: The connector up did not finish the handshake within 10000 ms.");
  });

  test("for a call after its timeout without a sign of life, and the upstream is notified", async () => {
    await using w = world();
    await w.up.list();
    w.inCalls({ kind: "hang" });
    const told = w.next("notifications/cancelled");
    expect(await timedOut(w)).toBe(
      "timeout: The connector up sent neither an answer nor progress for 60000 ms. It is unknown whether the call was carried out.",
    );
    await told;
  });
});

describe("an upstream that cannot be reached", () => {
  test("is left alone, longer each time, and then tried again", async () => {
    await using w = world();
    w.inHandshakes({ kind: "status", status: 503, body: "" });
    for (const longest of [250, 500, 1_000, 2_000]) {
      expect(await faultOf(w.up.list())).toBe("refused: The connector up answered with status 503");
      const asked = w.fake.heard.length;
      expect(await faultOf(w.up.call("echo"))).toStartWith("unavailable: The connector up has failed");
      expect(w.fake.heard).toHaveLength(asked);
      w.clock.advance(longest);
    }
    expect(w.up.logged.filter(({ level }) => level === "warn")).toHaveLength(1);
    w.inHandshakes(undefined);
    expect(textOf(await w.up.call("echo", { text: "hi" }))).toBe("hi");
    expect(w.up.logged.at(-1)).toMatchObject({ level: "info", message: "a connector is reachable again" });
  });

  test("is contacted once for all simultaneous callers", async () => {
    await using w = world();
    w.inHandshakes({ kind: "status", status: 503, body: "" });
    const faults = await Promise.all(Array.from({ length: 40 }, () => faultOf(w.up.call("echo"))));
    expect(new Set(faults)).toEqual(new Set(["refused: The connector up answered with status 503"]));
    expect(w.fake.heard).toEqual(["initialize"]);
  });

  test("releases a caller that gives up, and not the others", async () => {
    await using w = world();
    w.inHandshakes({ kind: "hang" });
    const arrived = w.next("initialize");
    const caller = new AbortController();
    const [one, other] = [
      faultOf(w.up.call("echo", {}, { signal: caller.signal })),
      faultOf(w.up.call("echo", {})),
    ];
    await arrived;
    caller.abort();
    expect(await one).toBe("cancelled: The call to the connector up was cancelled.");
    w.clock.advance(10_000);
    expect(await other).toStartWith("timeout: ");
  });
});

describe("an upstream that does not answer calls", () => {
  test("is left alone after five, then tried with one call, and used again when that is answered", async () => {
    await using w = world();
    await w.up.list();
    w.inCalls({ kind: "hang" });
    for (let call = 0; call < 5; call += 1) expect(await timedOut(w)).toStartWith("timeout: ");
    expect(await faultOf(w.up.call("echo"))).toMatch(
      /^unavailable: The connector up has failed\. The next attempt is in \d+ ms\. The connector up sent neither an answer/,
    );
    w.clock.advance(250);
    const arrived = w.next("tools/call");
    const trial = faultOf(w.up.call("echo"));
    await arrived;
    expect(await faultOf(w.up.call("echo"))).toBe(
      "unavailable: The connector up has not answered for some time, and another call is testing it now.",
    );
    w.clock.advance(TIMEOUT_MS);
    expect(await trial).toStartWith("timeout: ");
    expect(await faultOf(w.up.call("echo"))).toStartWith(
      "unavailable: The connector up has failed 2 times in a row",
    );
    w.clock.advance(500);
    w.inCalls(undefined);
    expect(textOf(await w.up.call("echo", { text: "hi" }))).toBe("hi");
    const both = await Promise.all([w.up.call("echo", { text: "a" }), w.up.call("echo", { text: "b" })]);
    expect(both.map(textOf)).toEqual(["a", "b"]);
  });

  test("is not left alone because of calls that it refuses", async () => {
    await using w = world();
    w.inCalls({ kind: "status", status: 500, body: "" });
    for (let call = 0; call < 12; call += 1)
      expect(await faultOf(w.up.call("echo"))).toStartWith("refused: ");
  });
});

test("at most 40 calls are in flight at once over HTTP", async () => {
  await using w = world();
  await w.up.list();
  w.inCalls({ kind: "hang" });
  const caller = new AbortController();
  const calls = Array.from({ length: 40 }, () => faultOf(w.up.call("echo", {}, { signal: caller.signal })));
  expect(await faultOf(w.up.call("echo"))).toBe(
    "unavailable: The connector up already has 40 calls in flight. Try again later.",
  );
  caller.abort();
  expect(new Set(await Promise.all(calls))).toEqual(
    new Set(["cancelled: The call to the connector up was cancelled."]),
  );
  w.inCalls(undefined);
  expect(textOf(await w.up.call("echo", { text: "hi" }))).toBe("hi");
});
