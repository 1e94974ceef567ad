/** How many connectors a workspace may have, including when several are added at the same moment. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { Problem } from "../../src/base/errors.ts";
import { insertConnector } from "../../src/connectors/definition/rows.ts";
import { type ConnectorBench, openConnectorBench } from "./bench.ts";

const PER_WORKSPACE = 200;

let bench: ConnectorBench;
beforeEach(async () => {
  bench = await openConnectorBench();
});
afterEach(async () => {
  await bench.connectors.stop();
  await bench.close();
});

/** Writes existing connectors straight into the store. */
async function fill(workspaceId: number, count: number): Promise<void> {
  await bench.db.tx(1, async (tx) => {
    for (let made = 0; made < count; made++) {
      await insertConnector(tx, {
        workspaceId,
        name: `full${made}`,
        kind: "mcp",
        sealed: new Uint8Array(),
        status: "ready",
        error: null,
        scopes: ["*"],
        tools: [],
        authorisedBy: "token:tok_1",
        authorisedAt: 0,
      });
    }
  });
}

/**
 * Creates connectors at the same time.
 * @returns how each ended, in order of their names
 */
function createAll(names: readonly string[]): Promise<string[]> {
  return Promise.all(
    names.map(async (name) => {
      try {
        await bench.create(name);
        return "created";
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        return `${error.status} ${error.code}`;
      }
    }),
  );
}

test.each([0, 1, 3])(
  "if there is room for %d connectors, no more are added at the same time",
  async (room) => {
    await fill(1, PER_WORKSPACE - room);
    await fill(2, PER_WORKSPACE);
    const names = ["a", "b", "c", "d", "e"];
    const ended = await createAll(names);
    expect(ended.filter((each) => each === "created")).toHaveLength(room);
    expect(ended.filter((each) => each === "409 connector_limit")).toHaveLength(names.length - room);
    const inFirst = "SELECT count(*) AS n FROM connectors WHERE workspace_id = 1";
    expect(await bench.db.get<{ n: number }>(inFirst)).toEqual({ n: PER_WORKSPACE });
    const allowed = names.filter((_, index) => ended[index] === "created");
    expect(bench.opened.map(({ name }) => name).sort()).toEqual(allowed);
    const entries = bench.entries().filter(({ action }) => action === "connector.authorise");
    expect(entries.map(({ detail }) => detail?.connector)).toEqual(allowed);
  },
);

test("creating the same name several times at once makes one connector", async () => {
  const ended = await createAll(["same", "same", "same"]);
  expect(ended.sort()).toEqual(["409 connector_exists", "409 connector_exists", "created"]);
  expect(bench.stored()).toMatchObject([{ name: "same" }]);
});

test("a removed connector makes room", async () => {
  await fill(1, PER_WORKSPACE - 1);
  expect(await createAll(["last", "more"])).toEqual(["created", "409 connector_limit"]);
  await bench.connectors.remove(bench.call("connector.remove"), "last");
  expect(await createAll(["more"])).toEqual(["created"]);
});
