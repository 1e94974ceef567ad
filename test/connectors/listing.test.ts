/** What listing an upstream's tools leaves in the store and the ledger, and what it may not leave. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ConnectorError } from "../../src/connectors/source.ts";
import type { KeptTool } from "../../src/connectors/tools/kept-tool.ts";
import { gate, until } from "../tasks/support.ts";
import { type ConnectorBench, openConnectorBench, tool } from "./bench.ts";

let bench: ConnectorBench;
beforeEach(async () => {
  bench = await openConnectorBench();
});
afterEach(async () => {
  await bench.connectors.stop();
  await bench.close();
});

const refreshes = () => bench.entries().filter(({ action }) => action === "connector.refresh");
const refresh = () => bench.connectors.refresh(bench.call("connector.refresh"), "up");

describe("an upstream that reports changed tools", () => {
  test("without a change adds no entry, however often; with a change it adds one", async () => {
    let tools: readonly KeptTool[] = [tool("echo")];
    let lists = 0;
    bench.script({
      async list() {
        lists += 1;
        return [...tools];
      },
    });
    await bench.create("up");
    const before = refreshes();
    for (let times = 0; times < 5; times++) bench.opened[0]?.toolsChanged();
    await until(() => lists === 6);
    tools = [tool("echo"), tool("more")];
    bench.opened[0]?.toolsChanged();
    // Entries are written in the order of the lists, so an entry of an earlier list would come before this one.
    await until(() => refreshes().length > before.length);
    expect(lists).toBe(7);
    expect(refreshes().slice(before.length)).toMatchObject([
      { actor: "system", outcome: "succeeded", detail: { connector: "up", tools: 2, before: 1 } },
    ]);
  });

  test("and then repeatedly fails adds one entry for each change of its state", async () => {
    let fault: ConnectorError | null = null;
    let lists = 0;
    bench.script({
      async list() {
        lists += 1;
        if (fault) throw fault;
        return [tool("echo")];
      },
    });
    await bench.create("up");
    const before = refreshes().length;
    fault = new ConnectorError("unreachable", "The connector up cannot be reached.");
    for (let times = 0; times < 3; times++) bench.opened[0]?.toolsChanged();
    await until(() => lists === 4);
    fault = null;
    bench.opened[0]?.toolsChanged();
    await until(() => refreshes().length === before + 2);
    expect(refreshes().slice(before)).toMatchObject([
      { outcome: "failed", detail: { status: "unreachable" } },
      { outcome: "succeeded", detail: { status: "ready" } },
    ]);
    expect(bench.stored()).toEqual([{ name: "up", status: "ready", error: null }]);
  });
});

describe("a stop during a listing", () => {
  /** From now on lists wait for the stop and then fail with it, as an upstream's lists do. */
  function hold(): { readonly asked: Promise<void>; readonly list: (signal: AbortSignal) => Promise<never> } {
    const asked = gate();
    return {
      asked: asked.opened,
      list(signal) {
        const { promise, reject } = Promise.withResolvers<never>();
        const leave = () => reject(new ConnectorError("cancelled", "The call was cancelled."));
        signal.addEventListener("abort", leave, { once: true });
        asked.open();
        return promise;
      },
    };
  }

  test.each([
    ["that the upstream requested", () => void bench.opened[0]?.toolsChanged()],
    ["that a caller requested", () => refresh()],
  ])("%s leaves the stored tools unchanged, and no entry", async (_, begin) => {
    const held = hold();
    let list = async (_signal: AbortSignal): Promise<readonly KeptTool[]> => [tool("echo")];
    bench.script({ list: (signal) => list(signal) });
    await bench.create("up");
    const before = [bench.stored(), refreshes()];
    list = held.list;
    const began = Promise.resolve(begin()).catch((error: unknown) => error);
    await held.asked;
    await bench.connectors.stop();
    const refusal = await began;
    if (refusal !== undefined) expect(refusal).toMatchObject({ status: 503, code: "draining" });
    expect([bench.stored(), refreshes()]).toEqual(before);
    expect(bench.stored()).toEqual([{ name: "up", status: "ready", error: null }]);
  });

  test("during its creation leaves it as not yet reached", async () => {
    const { asked, list } = hold();
    bench.script({ list });
    const creating = bench.create("up");
    await asked;
    await bench.connectors.stop();
    await creating;
    expect(refreshes()).toEqual([]);
    expect(bench.stored()).toEqual([
      { name: "up", status: "unreachable", error: "It has not been reached yet." },
    ]);
  });
});
