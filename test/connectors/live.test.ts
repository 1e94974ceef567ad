import { describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { Signal } from "../../src/base/signal.ts";
import { type ConnectorCall, LiveConnector } from "../../src/connectors/live.ts";
import { ConnectorError, type ToolAnswer, type ToolSource } from "../../src/connectors/source.ts";
import { keepTool } from "../../src/connectors/tools/kept-tool.ts";
import { ListingAllowance } from "../../src/connectors/tools/listing-allowance.ts";
import { ToolMemory } from "../../src/connectors/tools/memory-share.ts";
import { FakeClock } from "../support/clock.ts";

const TOOL = keepTool({ name: "a", description: "", inputSchema: { type: "object" }, destructive: false });
const context = { signal: new AbortController().signal, callId: "call_1" };
const answer: ToolAnswer = { content: [{ type: "text", text: "hi" }] };

function live(
  source: Partial<ToolSource> | null,
  stored: { status?: "ready" | "disabled"; error?: string } = {},
) {
  const watched: string[] = [];
  const called = new Signal<ConnectorCall>();
  called.listen(({ outcome }) => void watched.push(outcome));
  let closed = 0;
  const whole: ToolSource | null = source && {
    list: async () => [TOOL],
    call: async () => answer,
    async close() {
      closed += 1;
    },
    ...source,
  };
  const connector = new LiveConnector(
    {
      id: 1,
      workspaceId: 1,
      name: "up",
      kind: "mcp",
      status: "ready",
      error: null,
      scopes: ["*"],
      authorisedBy: "token:1",
      authorisedAt: 0,
      tools: [],
      ...stored,
    },
    whole,
    {
      ...{ log: silentLog, now: () => 0, statusChanged: () => {} },
      toolMemory: new ToolMemory(),
      allowance: new ListingAllowance(new FakeClock()),
      called,
    },
  );
  return { connector, watched, closed: () => closed };
}

const failing = (error: Error) => ({ list: () => Promise.reject(error), call: () => Promise.reject(error) });

describe("a connector that cannot be reached", () => {
  test("keeps its tools, and reports why", async () => {
    let isDown = false;
    const { connector } = live({
      async list() {
        if (isDown) throw new ConnectorError("unreachable", "The connector up cannot be reached.");
        return [TOOL];
      },
    });
    expect(await connector.list(context.signal)).toBe(true);
    isDown = true;
    expect(await connector.list(context.signal)).toBe(false);
    expect(connector.said).toEqual({
      status: "unreachable",
      error: "The connector up cannot be reached.",
      tools: [TOOL],
    });
    isDown = false;
    await connector.list(context.signal);
    expect(connector.connector).toMatchObject({ status: "ready", error: null });
  });

  test("is ready again after an answered call", async () => {
    const { connector } = live({ list: failing(new ConnectorError("timeout", "late")).list });
    await connector.list(context.signal);
    expect(connector.connector.status).toBe("unreachable");
    expect(await connector.call(TOOL, {}, context)).toBe(answer);
    expect(connector.connector.status).toBe("ready");
  });

  test.each([
    ["unreachable", "unreachable"],
    ["timeout", "unreachable"],
    ["unavailable", "unreachable"],
    ["forbidden_address", "unreachable"],
    ["refused", "ready"],
    ["invalid_answer", "ready"],
    ["too_large", "ready"],
    ["cancelled", "ready"],
  ] as const)("a call's %s leaves it %s", async (fault, status) => {
    const { connector, watched } = live({ call: failing(new ConnectorError(fault, "no")).call });
    await expect(connector.call(TOOL, {}, context)).rejects.toThrow("no");
    expect([connector.connector.status, watched]).toEqual([status, ["failed"]]);
  });
});

test("errors not worded by its source are repeated neither by a list nor by a call", async () => {
  const { connector } = live(failing(new TypeError("fetch failed: token hunter22")));
  await connector.list(context.signal);
  expect(connector.connector.error).toBe("The connector up failed.");
  await expect(connector.call(TOOL, {}, context)).rejects.toThrow(/^The connector up failed.$/);
});

test("tools that exceed a connector's room are not accepted", async () => {
  const huge = { ...TOOL, description: "x".repeat(8 * 1024 * 1024) };
  const { connector } = live({ list: async () => [huge] });
  expect(await connector.list(context.signal)).toBe(false);
  expect(connector.tools).toEqual([]);
  expect(connector.connector.error).toContain("one connector may have 2000 tools (8.0 MiB)");
});

test("lists are requested one after another", async () => {
  let running = 0;
  let most = 0;
  const { connector } = live({
    async list() {
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
      return [];
    },
  });
  await Promise.all([1, 2, 3].map(() => connector.list(context.signal)));
  expect(most).toBe(1);
});

test("a disabled connector is neither listed nor called, and reports why", async () => {
  const { connector } = live(null, { status: "disabled", error: "The key is another." });
  expect(await connector.list(context.signal)).toBe(false);
  await expect(connector.call(TOOL, {}, context)).rejects.toThrow("The key is another.");
  expect(connector.connector).toMatchObject({ status: "disabled", error: "The key is another." });
  await connector.end();
});

test("once removed it is closed, and answers no call", async () => {
  const { connector, closed } = live({});
  await connector.end();
  expect(closed()).toBe(1);
  await expect(connector.call(TOOL, {}, context)).rejects.toThrow("was removed");
  expect(await connector.list(context.signal)).toBe(false);
});

test("each call is counted in the metrics by its outcome", async () => {
  const { connector, watched } = live({
    call: async (_tool, input) => (input.fail === true ? { ...answer, isError: true } : answer),
  });
  await connector.call(TOOL, {}, context);
  await connector.call(TOOL, { fail: true }, context);
  expect(watched).toEqual(["succeeded", "failed"]);
});
