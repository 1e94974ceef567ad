/** Nodes that share a store: who is alive, messages, leases and the common clock. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { createIds, idTime, idTimeOf, systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import type { BusMessage } from "../../src/nodes/bus.ts";
import type { Nodes } from "../../src/nodes/nodes.ts";
import { openNodes } from "../../src/nodes/shared/open-nodes.ts";
import { SharedClock } from "../../src/nodes/shared/shared-clock.ts";
import type { Db } from "../../src/store/db.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";

/** A clock that is wrong, and whose timers can be stopped as if the process were frozen. */
class TestClock implements Clock {
  isFrozen = false;
  readonly #wrongBy: number;

  constructor(wrongBy = 0) {
    this.#wrongBy = wrongBy;
  }

  now = () => systemClock.now() + this.#wrongBy;
  monotonic = () => systemClock.monotonic();

  after(ms: number, task: () => void): () => void {
    const run = () => {
      if (this.isFrozen) setTimeout(run, 20);
      else task();
    };
    return systemClock.after(ms, run);
  }
}

describe.skipIf(missingPostgres !== undefined)("nodes that share a store", () => {
  let database: TestDatabase;
  const opened: { readonly db: Db; readonly nodes: Nodes }[] = [];

  beforeAll(async () => {
    database = await createDatabase();
  });

  afterEach(async () => {
    for (const node of [...opened]) await close(node);
  });

  afterAll(() => database.drop());

  async function open(clock: Clock = systemClock) {
    const db = await openPostgres({ url: database.url });
    const newId = createIds(clock, systemRandom);
    const nodes = await openNodes({
      db,
      url: database.url,
      clock,
      log: silentLog,
      newId: () => newId("node"),
    });
    const node = { db, nodes };
    opened.push(node);
    return node;
  }

  async function close(node: { readonly db: Db; readonly nodes: Nodes }): Promise<void> {
    opened.splice(opened.indexOf(node), 1);
    await node.nodes.close();
    await node.db.close();
  }

  async function listening(node: { readonly nodes: Nodes }): Promise<void> {
    await until(() => node.nodes.bus.deafForMs < 1_000);
  }

  /** As if this node had not been seen for ten seconds. */
  async function forget({ nodes }: { readonly nodes: Nodes }): Promise<void> {
    await database.query("DELETE FROM nodes WHERE id = $1", [nodes.id]);
  }

  test("see each other, and no more after one has left", async () => {
    const [first, second] = [await open(), await open()];
    first.nodes.countTasks(() => 3);
    const listed = await second.nodes.list();
    expect(listed.map(({ id }) => id).sort()).toEqual([first.nodes.id, second.nodes.id].sort());
    expect(listed[0]).toMatchObject({ version: "0.1.0", tasks: 0 });
    await until(async () => (await second.nodes.list())[0]?.tasks === 3);
    await close(first);
    expect((await second.nodes.list()).map(({ id }) => id)).toEqual([second.nodes.id]);
  });

  test("a node that was given up goes on with another id, and is told", async () => {
    const node = await open();
    const former = node.nodes.id;
    const lost: string[] = [];
    node.nodes.lost.listen((id) => lost.push(id));
    await forget(node);
    await until(() => lost.length > 0);
    expect(lost).toEqual([former]);
    expect(node.nodes.id).not.toBe(former);
    await until(async () => (await node.nodes.list()).length === 1);
  });

  test("give a frozen node up, but not before they have been seen long enough themselves", async () => {
    const clock = new TestClock();
    const frozen = await open(clock);
    clock.isFrozen = true;
    await Bun.sleep(3_000);
    const other = await open();
    const begun = performance.now();
    await until(async () => (await other.nodes.list()).length === 1);
    expect(performance.now() - begun).toBeGreaterThan(7_000);
    const lost = Promise.withResolvers<void>();
    frozen.nodes.lost.listen(() => lost.resolve());
    clock.isFrozen = false;
    await lost.promise;
  }, 30_000);

  describe("messages", () => {
    test("reach the others and not their sender, in order", async () => {
      const [first, second, third] = [await open(), await open(), await open()];
      await Promise.all([first, second, third].map(listening));
      const received = [first, second, third].map(({ nodes }) => {
        const messages: BusMessage[] = [];
        nodes.bus.listen("test", (message) => messages.push(message));
        return messages;
      });
      for (let at = 0; at < 500; at++) first.nodes.bus.send("test", { at, text: "x".repeat(100) });
      first.nodes.bus.send("other", { at: 0 });
      const expected = Array.from({ length: 500 }, (_, at) => ({ at, text: "x".repeat(100) }));
      await until(() => received[1]?.length === 500 && received[2]?.length === 500);
      expect(received).toEqual([[], expected, expected]);
    });

    test("that are too long are refused", async () => {
      const { nodes } = await open();
      expect(() => nodes.bus.send("test", { text: "x".repeat(4_000) })).toThrow(RangeError);
    });

    test("that no node has sent are ignored", async () => {
      const { nodes } = await open();
      await listening({ nodes });
      const messages: BusMessage[] = [];
      nodes.bus.listen("test", (message) => messages.push(message));
      for (const payload of [
        "",
        "{",
        "[]",
        '{"from":"x","messages":[["test"]]}',
        '{"from":"x","messages":[["test",{"a":{}}]]}',
      ])
        await database.query("SELECT pg_notify('gatehouse', $1)", [payload]);
      await database.query("SELECT pg_notify('gatehouse', $1)", [
        '{"from":"x","messages":[["test",{"a":1}]]}',
      ]);
      await until(() => messages.length > 0);
      expect(messages).toEqual([{ a: 1 }]);
    });

    test("may have been missed after the connection was lost, and those sent meanwhile arrive", async () => {
      const [first, second] = [await open(), await open()];
      await Promise.all([first, second].map(listening));
      let missed = 0;
      second.nodes.bus.missed.listen(() => missed++);
      const messages: BusMessage[] = [];
      second.nodes.bus.listen("test", (message) => messages.push(message));
      await database.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
      );
      await until(() => missed > 0);
      first.nodes.bus.send("test", { at: 1 });
      await until(() => messages.length > 0);
    });
  });

  describe("a lease", () => {
    const holder = (node: { readonly nodes: Nodes }, name: string, events: string[], who: string) =>
      node.nodes.leases.hold(name, () => {
        events.push(`${who} begins`);
        return () => events.push(`${who} ends`);
      });

    test("is held by one node, and by another once it is given up", async () => {
      const [first, second] = [await open(), await open()];
      const events: string[] = [];
      const giveUp = holder(first, "given", events, "first");
      await until(() => events.length === 1);
      holder(second, "given", events, "second");
      await Bun.sleep(300);
      expect(events).toEqual(["first begins"]);
      expect([first, second].map(({ nodes }) => nodes.leases.has("given"))).toEqual([true, false]);
      giveUp();
      await until(() => events.length === 3);
      expect(events).toEqual(["first begins", "first ends", "second begins"]);
    });

    test("is lost with its node, whose transactions learn it at once", async () => {
      const [first, second] = [await open(), await open()];
      const events: string[] = [];
      holder(first, "lost", events, "first");
      await until(() => events.length === 1);
      const isHeld = () => first.db.tx(null, (tx) => first.nodes.leases.isHeld(tx, "lost"));
      expect(await isHeld()).toBe(true);
      await forget(first);
      expect(await isHeld()).toBe(false);
      holder(second, "lost", events, "second");
      await until(() => events.includes("second begins") && events.includes("first ends"));
    });
  });

  test("nodes whose clocks differ have one time", async () => {
    const clocks = [new SharedClock(new TestClock(300_000)), new SharedClock(new TestClock(-300_000))];
    const before = idTimeOf(Date.now());
    for (const clock of clocks) await open(clock);
    const times = clocks.map((clock) => clock.now());
    expect(Math.max(...times) - Math.min(...times)).toBeLessThan(1_000);
    // Lists are in the order of ids, whichever node has made them.
    const after = idTimeOf(Date.now() + 1);
    for (const id of opened.map(({ nodes }) => idTime(nodes.id))) {
      expect(id >= before && id <= after).toBe(true);
    }
  });
});
