/** Schedules fire once, whichever nodes live. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";

setDefaultTimeout(60_000);

const START = Date.UTC(2026, 0, 2, 3, 4, 50);
const MINUTE = 60_000;

describe.skipIf(missingPostgres !== undefined)("a schedule on two nodes", () => {
  let clock: FakeClock;
  let started: TestNodes;

  beforeEach(async () => {
    clock = new FakeClock(START);
    started = await startNodes(2, { clock });
    await nodeAt(0).agent("helper");
  });
  afterEach(() => started.stop());

  const nodeAt = (index: number): TestGateway => {
    const node = started.nodes[index];
    if (!node) throw new Error(`there is no node ${index}`);
    return node;
  };

  async function create(node: TestGateway): Promise<string> {
    const body = { name: "often", agent: "helper", prompt: "hello", cron: "* * * * *" };
    const created = await node.call("POST", "/v1/schedules", { body });
    expect(created.status).toBe(201);
    return created.body.id;
  }

  /** The times for which tasks were dispatched, according to the ledger. */
  async function dispatched(): Promise<string[]> {
    const rows = await started.database.query<{ bytes: string }>(
      `SELECT bytes FROM ledger WHERE bytes LIKE '%"action":"task.dispatch"%'
         AND bytes LIKE '%"phase":"intent"%' ORDER BY seq`,
    );
    return rows.map(({ bytes }) => JSON.parse(bytes).detail.scheduled_at);
  }

  /** Moves the time on, slowly enough that nothing counts as missed, until a time has its task. */
  async function reach(count: number): Promise<void> {
    await until(async () => {
      if (clock.now() < START + count * MINUTE) clock.advance(1_000);
      else clock.advance(1);
      return (await dispatched()).length >= count;
    });
  }

  const timeOf = (index: number) => new Date(START + 10_000 + index * MINUTE).toISOString();

  const holder = async () => {
    const [row] = await started.database.query<{ node_id: string }>(
      "SELECT node_id FROM node_leases WHERE name = 'schedules'",
    );
    return row?.node_id;
  };

  test.each([0, 1])("created on node %d is known at once by the node that dispatches", async (index) => {
    await create(nodeAt(index));
    await reach(1);
    // By itself, that node looks only every half minute.
    expect(clock.now()).toBeLessThan(START + 30_000);
    expect(await dispatched()).toEqual([timeOf(0)]);
  });

  test("goes on when the node that dispatched leaves", async () => {
    const id = await create(nodeAt(0));
    await reach(1);
    await nodeAt(0).stop();
    await until(async () => {
      clock.advance(1);
      return (await holder()) !== undefined;
    });
    await reach(2);
    expect(await dispatched()).toEqual([timeOf(0), timeOf(1)]);
    const { body } = await nodeAt(1).call("GET", `/v1/schedules/${id}`);
    expect(body.last_run.task).toStartWith("task_");
  });

  test("fires once although the node that dispatches was given up and does not know it yet", async () => {
    await create(nodeAt(0));
    await reach(1);
    for (const count of [2, 3, 4]) {
      await started.database.query("DELETE FROM nodes WHERE id = $1", [await holder()]);
      await reach(count);
    }
    expect(await dispatched()).toEqual([0, 1, 2, 3].map(timeOf));
  });
});
