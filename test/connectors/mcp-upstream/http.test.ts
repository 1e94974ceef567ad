import { describe, expect, test } from "bun:test";
import type { ToolProgress } from "../../../src/connectors/source.ts";
import { FakeClock } from "../../support/clock.ts";
import { type FakeMcp, type FakeMcpOptions, type Fault, startFakeMcp } from "../../support/fake-mcp/http.ts";
import { testOutbound } from "../../support/outbound.ts";
import { faultOf, type Given, type Opened, open, SECRET, textOf } from "./support.ts";

type Kind = "http" | "sse";
const UNKNOWN = "It is unknown whether the call was carried out.";

/** A scripted upstream and a source for it; both end with the test. */
function serve(kind: Kind, options: FakeMcpOptions = {}, given: Given = {}) {
  const fake: FakeMcp = startFakeMcp(options);
  const url = kind === "http" ? fake.url : fake.sseUrl;
  const up = open({ type: kind, url, headers: { authorization: `Bearer ${SECRET}` } }, given);
  return {
    fake,
    up: up as Opened,
    async [Symbol.asyncDispose]() {
      await up[Symbol.asyncDispose]();
      await fake.close();
    },
  };
}

/** A fault that only calls of tools have. */
const inCalls =
  (fault: Fault): NonNullable<FakeMcpOptions["fault"]> =>
  ({ method }) =>
    method === "tools/call" ? fault : undefined;

describe("a call over Streamable HTTP", () => {
  test.each<[string, Fault, string]>([
    [
      "an error status",
      { kind: "status", status: 500, body: `no <b>way</b>,\n ${SECRET}` },
      "refused: The connector up answered with status 500: no <b>way</b>, [redacted]",
    ],
    ["401", { kind: "status", status: 401, body: "" }, "refused: The connector up answered with status 401"],
    [
      "100 MB as JSON",
      { kind: "flood", as: "json" },
      "too_large: The connector up sent a message of more than 16 MiB.",
    ],
    [
      "100 MB as one event",
      { kind: "flood", as: "stream" },
      "too_large: The connector up sent a message of more than 16 MiB.",
    ],
    [
      "a stream that breaks",
      { kind: "broken" },
      `unreachable: The connector up ended the connection before it answered. ${UNKNOWN}`,
    ],
    [
      "a stream that ends",
      { kind: "ended" },
      `unreachable: The connector up ended the connection before it answered. ${UNKNOWN}`,
    ],
    ["202", { kind: "empty" }, "invalid_answer: The connector up sent something other than the answer."],
    [
      "another's answer",
      { kind: "other" },
      "invalid_answer: The connector up sent something other than the answer.",
    ],
    [
      "not JSON-RPC",
      { kind: "garbage" },
      "invalid_answer: The connector up sent a stream without an answer.",
    ],
    [
      "a stream whose rest it does not have",
      { kind: "broken", priming: true },
      `unreachable: The connector up ended the connection before it answered. ${UNKNOWN}`,
    ],
  ])("answered with %s fails at once, and is made once", async (_, fault, words) => {
    await using server = serve("http", { fault: inCalls(fault) });
    expect(await faultOf(server.up.call("echo"))).toBe(words);
    expect(server.fake.heard.filter((method) => method === "tools/call")).toHaveLength(1);
    expect(await server.up.list()).not.toBeEmpty();
    // Only the limit and what was already in transit was read.
    expect(server.fake.flooded()).toBeLessThan(60_000_000);
  });

  test("is not redirected to another host", async () => {
    await using other = serve("http");
    await using server = serve("http", { fault: inCalls({ kind: "redirect", to: other.fake.url }) });
    expect(await faultOf(server.up.call("echo"))).toStartWith("refused: ");
    expect(other.fake.heard).toEqual([]);
  });

  test("in a session that is gone is repeated once, in a new session", async () => {
    await using server = serve("http");
    await server.up.list();
    server.fake.forget();
    expect(textOf(await server.up.call("echo", { text: "hi" }))).toBe("hi");
    const since = server.fake.heard.slice(server.fake.heard.lastIndexOf("tools/list") + 1);
    expect(since.filter((method) => method !== "GET")).toEqual([
      "tools/call",
      "initialize",
      "notifications/initialized",
      "tools/call",
    ]);
  });

  test("is abandoned after two sessions that do not last", async () => {
    await using server = serve("http", { fault: inCalls({ kind: "status", status: 404, body: "" }) });
    expect(await faultOf(server.up.call("echo"))).toBe("refused: The connector up answered with status 404");
    expect(server.fake.heard.filter((method) => method === "tools/call")).toHaveLength(2);
  });

  test("whose stream stays open after the answer does not keep that stream forever", async () => {
    const clock = new FakeClock();
    const left = Promise.withResolvers<void>();
    await using server = serve(
      "http",
      { fault: inCalls({ kind: "lingers", left: left.resolve }) },
      { clock },
    );
    expect(textOf(await server.up.call("echo"))).toBe("here");
    clock.advance(1_000);
    await left.promise;
  });

  test("that found no listener is made again", async () => {
    const first = startFakeMcp();
    let second: FakeMcp | undefined;
    const restart = async (): Promise<void> => {
      second ??= startFakeMcp({ port: first.port });
    };
    const { fetch } = testOutbound();
    await using up = open(
      { type: "http", url: first.url, headers: {} },
      {
        fetch: (url, init) => fetch(url, init).catch((error) => restart().then(() => Promise.reject(error))),
      },
    );
    await up.list();
    await first.close();
    expect(textOf(await up.call("echo", { text: "hi" }))).toBe("hi");
    expect(second?.heard.filter((method) => method !== "GET")).toEqual([
      "initialize",
      "notifications/initialized",
      "tools/call",
    ]);
    await second?.close();
  });
});

describe.each<Kind>(["http", "sse"])("over %s", (kind) => {
  test("tools are listed and called, with the definition's headers", async () => {
    await using server = serve(kind);
    expect(await server.up.list()).toHaveLength(16);
    expect(textOf(await server.up.call("echo", { text: "hi" }))).toBe("hi");
    expect(server.fake.lastHeaders().authorization).toBe(`Bearer ${SECRET}`);
  });

  test("progress is reported, including the last", async () => {
    await using server = serve(kind);
    const told: ToolProgress[] = [];
    await server.up.call("progress", { steps: 3 }, { progress: (progress) => told.push(progress) });
    expect(told.map(({ progress }) => progress)).toEqual([1, 2, 3]);
  });

  test("a cancelled call notifies the upstream", async () => {
    const asked = Promise.withResolvers<void>();
    const told = Promise.withResolvers<void>();
    await using server = serve(kind, {
      fault: ({ method }) => {
        if (method === "tools/call") asked.resolve();
        if (method === "notifications/cancelled") told.resolve();
        return undefined;
      },
    });
    const caller = new AbortController();
    const call = faultOf(server.up.call("hang", {}, { signal: caller.signal }));
    await asked.promise;
    caller.abort();
    expect(await call).toStartWith("cancelled: ");
    await told.promise;
  });

  test("a server's request for a sample is refused", async () => {
    const answered = Promise.withResolvers<void>();
    await using server = serve(kind, {
      fault: ({ method }) => {
        if (method === undefined) answered.resolve();
        return undefined;
      },
    });
    await server.up.call("ask");
    await answered.promise;
    expect(JSON.parse(textOf(await server.up.call("heard"))).at(-1)).toMatchObject({
      error: { code: -32601 },
    });
  });

  test("an upstream that refuses the handshake is left alone", async () => {
    await using server = serve(kind, { fault: () => ({ kind: "status", status: 403, body: "go away" }) });
    expect(await faultOf(server.up.list())).toBe(
      "refused: The connector up answered with status 403: go away",
    );
    expect(await faultOf(server.up.list())).toMatch(
      /^unavailable: The connector up has failed\. The next attempt is in \d+ ms\. The connector up answered with status 403/,
    );
  });

  test("an address without a listener is reported in plain words", async () => {
    const fake = startFakeMcp();
    await fake.close();
    await using up = open({ type: kind, url: kind === "http" ? fake.url : fake.sseUrl, headers: {} });
    expect(await faultOf(up.list())).toBe(
      "unreachable: The connector up cannot be reached: the connection was refused.",
    );
  });

  test("a forbidden address is not contacted", async () => {
    await using up = open({ type: kind, url: "http://169.254.169.254/mcp", headers: {} });
    expect(await faultOf(up.list())).toStartWith("forbidden_address: ");
  });
});

test("closing ends the session upstream", async () => {
  await using server = serve("http");
  await server.up.list();
  await server.up.source.close();
  expect(server.fake.heard.at(-1)).toBe("DELETE");
});

describe("over the older HTTP+SSE", () => {
  test("a stream that ends fails the calls in flight, and the next call opens another", async () => {
    const asked = Promise.withResolvers<void>();
    await using server = serve("sse", {
      fault: ({ method }) => {
        if (method === "tools/call") asked.resolve();
        return undefined;
      },
    });
    const call = faultOf(server.up.call("hang"));
    await asked.promise;
    server.fake.hangUp();
    expect(await call).toBe(`unreachable: The connector up ended its event stream. ${UNKNOWN}`);
    expect(textOf(await server.up.call("echo", { text: "hi" }))).toBe("hi");
  });

  test("anything but an event stream is refused", async () => {
    await using server = serve("sse");
    await using up = open({ type: "sse", url: server.fake.url, headers: {} });
    expect(await faultOf(up.list())).toStartWith("refused: The connector up answered with status 404");
  });
});
