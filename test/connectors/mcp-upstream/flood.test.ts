/** Upstreams that send small messages endlessly. */
import { describe, expect, test } from "bun:test";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import { Inflow } from "../../../src/base/inflow.ts";
import { silentLog } from "../../../src/base/log.ts";
import { createMask } from "../../../src/base/masking/mask.ts";
import { SseLink } from "../../../src/connectors/mcp-upstream/http/sse-link.ts";
import { StreamableLink } from "../../../src/connectors/mcp-upstream/http/streamable-link.ts";
import type { UpstreamLink } from "../../../src/connectors/mcp-upstream/link.ts";
import { StdioLink } from "../../../src/connectors/mcp-upstream/stdio/stdio-link.ts";
import { FakeClock } from "../../support/clock.ts";
import { countAtRest, mostInOneTurn, startFlood } from "../../support/flood.ts";
import { INSTANCE, testOutbound } from "../../support/outbound.ts";
import { fasterClock } from "./support.ts";

const MESSAGE = JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: {} });
const EVENT = `event: message\ndata: ${MESSAGE}\n\n`;
/**
 * Between two reads of the count, two turns may begin. An event is handed on together with the rest of the same 2
 * KiB.
 */
const MOST_BETWEEN = 2 * (32 + Math.ceil(2_048 / EVENT.length));
const BURST = 20_000;

const KINDS = {
  stdio: {
    first: "",
    open: (_: string, parts: Parts) => new StdioLink(shell(`yes '${MESSAGE}' & cat; kill $!`), parts),
  },
  http: {
    first: "",
    open: (url: string, parts: Parts) => new StreamableLink({ type: "http", url, headers: {} }, parts),
  },
  sse: {
    first: "event: endpoint\ndata: /message\n\n",
    open: (url: string, parts: Parts) => new SseLink({ type: "sse", url, headers: {} }, parts),
  },
};
type Parts = ConstructorParameters<typeof StdioLink>[1];

const shell = (script: string) =>
  ({ type: "stdio", command: "/bin/sh", args: ["-c", script], env: {} }) as const;

/** A link to an upstream that begins to flood, and the messages that came over it. */
async function flooded(kind: keyof typeof KINDS, clock: Clock) {
  const outbound = testOutbound();
  const { first, open } = KINDS[kind];
  const flood = await startFlood(EVENT, first);
  const parts = {
    ...{ name: "up", fetch: outbound.fetch, mask: createMask([]), instance: INSTANCE, clock, log: silentLog },
    ...{ random: systemRandom, timeoutMs: 20_000, handshakeMs: 20_000, programUsers: null, workspaceId: 1 },
    ...{ toolsChanged() {}, inflow: new Inflow(clock, 1) },
  };
  const link: UpstreamLink = open(flood.url, parts);
  const came = { count: 0 };
  link.onmessage = () => void came.count++;
  await link.start();
  // Over Streamable HTTP, the SDK listens when the handshake is over.
  if (kind === "http") {
    link.send({ jsonrpc: "2.0", method: "notifications/initialized" }).catch(() => {});
  }
  return {
    came,
    async [Symbol.asyncDispose]() {
      // A child's end is polled for.
      const ticking = setInterval(() => clock instanceof FakeClock && clock.advance(25), 1);
      await link.close();
      clearInterval(ticking);
      await flood.stop();
      outbound.close();
    },
  };
}

describe.each(["stdio", "http", "sse"] as const)("endless messages over %s", (kind) => {
  test("do not block the event loop: others run after 32 messages", async () => {
    await using up = await flooded(kind, systemClock);
    expect(await mostInOneTurn(() => up.came.count, 5_000)).toBeLessThanOrEqual(MOST_BETWEEN);
  });

  test("are read no faster than their rate after the first 20,000", async () => {
    const clock = new FakeClock();
    await using up = await flooded(kind, clock);
    const burst = await countAtRest(() => up.came.count, 0.9 * BURST);
    expect(burst).toBeLessThanOrEqual(BURST);
    clock.advance(1_000);
    expect((await countAtRest(() => up.came.count, burst + 1)) - burst).toBeLessThanOrEqual(1_000);
  });
});

test("endless output on standard error does not block the event loop", async () => {
  const outbound = testOutbound();
  const clock = fasterClock(1);
  const taken: number[] = [];
  const inflow = new Inflow(clock, 1);
  const take = inflow.take.bind(inflow);
  inflow.take = (arrival) => {
    taken.push(arrival.bytes);
    return take(arrival);
  };
  const link = new StdioLink(shell("yes '' >&2 & cat; kill $!"), {
    ...{ name: "up", fetch: outbound.fetch, mask: createMask([]), instance: INSTANCE, clock, log: silentLog },
    ...{ random: systemRandom, timeoutMs: 20_000, handshakeMs: 20_000, programUsers: null, workspaceId: 1 },
    ...{ toolsChanged() {}, inflow },
  });
  await link.start();
  expect(await mostInOneTurn(() => taken.length, 60)).toBeLessThanOrEqual(4);
  await link.close();
  outbound.close();
  expect(Math.max(...taken)).toBeLessThanOrEqual(16 * 1024);
});
