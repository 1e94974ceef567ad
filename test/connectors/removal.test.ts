/** A connector is removed while another takes its name, or while its open connections refuse to end. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { gate, until } from "../tasks/support.ts";
import { type ConnectorBench, openConnectorBench, said, tool } from "./bench.ts";

let bench: ConnectorBench;
beforeEach(async () => {
  bench = await openConnectorBench();
});
afterEach(async () => {
  await bench.connectors.stop();
  await bench.close();
});

const remove = (name: string) => bench.connectors.remove(bench.call("connector.remove"), name);
const names = () => bench.connectors.list(1, 0).map(({ name }) => name);
const ask = (name: string) => {
  const found = bench.catalogue.find(1, name);
  const context = { signal: new AbortController().signal, callId: "call_1" };
  return found?.call({ workspaceId: 1, agentId: null, actor: "token:tok_1" }, {}, context);
};

/** Creates a connector `up` that does not finish closing until it is released. */
async function createLingering() {
  const closing = gate();
  const end = gate();
  bench.script({
    list: async () => [tool("old")],
    async close() {
      closing.open();
      await end.opened;
    },
  });
  await bench.create("up");
  bench.script({ list: async () => [tool("new")], call: async () => said("the new one") });
  return { closing: closing.opened, end: end.open };
}

test("once its removal is on disk, its tools are unknown, although its connections are still open", async () => {
  const old = await createLingering();
  const removing = remove("up");
  await old.closing;
  expect(names()).toEqual([]);
  expect(bench.catalogue.find(1, "up.old")).toBeUndefined();
  await expect(remove("up")).rejects.toMatchObject({ code: "not_found" });
  old.end();
  await removing;
});

test("a new connector with its name works while the old one is still closing, and afterwards", async () => {
  const old = await createLingering();
  const removing = remove("up");
  await old.closing;
  await bench.create("up");
  expect(await ask("up.new")).toEqual(said("the new one"));
  old.end();
  await removing;
  expect(names()).toEqual(["up"]);
  expect(bench.catalogue.find(1, "up.old")).toBeUndefined();
  expect(await ask("up.new")).toEqual(said("the new one"));
  expect(bench.stored()).toMatchObject([{ name: "up", status: "ready" }]);
});

test("one of two simultaneous removals is refused, and a new connector with the name stays", async () => {
  await createLingering().then(({ end }) => end());
  const [first, second, created] = await Promise.allSettled([
    remove("up"),
    remove("up"),
    remove("up").catch(() => bench.create("up")),
  ]);
  expect([first.status, second.status, created.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await ask("up.new")).toEqual(said("the new one"));
  expect(bench.stored()).toMatchObject([{ name: "up" }]);
});

test("late reports of the old one are not attributed to the new one", async () => {
  const asked = gate();
  const late = gate();
  bench.script({
    list() {
      asked.open();
      return late.opened.then(() => [tool("old")]);
    },
  });
  const creating = bench.create("up");
  await asked.opened;
  await remove("up");
  let tools = ["new"];
  bench.script({ list: async () => tools.map(tool) });
  await bench.create("up");
  late.open();
  await creating;
  expect(bench.catalogue.toolsOf(1, "up").map(({ name }) => name)).toEqual(["up.new"]);
  const refreshed = () => bench.entries().filter(({ action }) => action === "connector.refresh");
  bench.opened[0]?.toolsChanged();
  tools = ["new", "more"];
  bench.opened[1]?.toolsChanged();
  await until(() => refreshed().length > 1);
  expect(refreshed().map(({ detail }) => detail?.tools)).toEqual([1, 2]);
  expect(bench.catalogue.toolsOf(1, "up").map(({ name }) => name)).toEqual(["up.new", "up.more"]);
});
