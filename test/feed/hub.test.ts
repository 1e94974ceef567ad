import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FEED_SCOPES, type FeedEventName } from "../../src/feed/events.ts";
import type { FeedRights } from "../../src/feed/rights.ts";
import { NAMED_SCOPES } from "../access/routes.ts";
import { EVERYTHING, eventOf, names, next, openHub, read, task } from "./support.ts";

const NAMES = Object.keys(FEED_SCOPES) as FeedEventName[];
const open = async () => EVERYTHING;

describe("not reported:", () => {
  test("anything while nobody listens, without lookups or timers", async () => {
    const bench = openHub();
    bench.hub.touch(1, "task", "t");
    bench.hub.publish(1, eventOf("connector.changed"));
    await bench.pass(5_000);
    expect([bench.looked, bench.timers()]).toEqual([[], 0]);
    const reader = bench.hub.listen(1, open);
    await bench.pass(5_000);
    expect(names(await read(reader))).toEqual(["feed.open"]);
    reader.close();
    expect(bench.timers()).toBe(0);
    expect(await next(reader)).toBeNull();
  });

  test("of another workspace", async () => {
    const bench = openHub();
    const [own, other] = [bench.hub.listen(1, open), bench.hub.listen(2, open)];
    bench.present.set("task:t", task("t", "queued"));
    bench.hub.touch(1, "task", "t");
    for (const name of NAMES) bench.hub.publish(1, eventOf(name));
    bench.hub.grown(1, 7);
    await bench.pass(2_000);
    expect(new Set(names(await read(own))).size).toBeGreaterThan(8);
    expect(names(await read(other))).toEqual(["feed.open"]);
  });

  test("anything outside a caller's scopes, agent and boundary, whatever they are", async () => {
    const rights = fc.record<FeedRights>({
      scopes: fc.subarray([...NAMED_SCOPES, "tools:*"]),
      agent: fc.constantFrom(null, { id: 1, name: "one" }, { id: 2, name: "two" }),
      boundary: fc.constantFrom(["/"], ["support"], ["legal/contracts", "support/public"], []),
      until: fc.constant(Number.POSITIVE_INFINITY),
    });
    const events = fc.array(
      fc.record({
        name: fc.constantFrom(...NAMES.filter((name) => name !== "usage")),
        agent: fc.constantFrom(undefined, null, 1, 2, "one", "two"),
        path: fc.constantFrom("support", "support/public", "supportx", "legal", "legal/contracts/a", "/"),
      }),
      { maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(rights, events, async (held, published) => {
        const bench = openHub();
        const reader = bench.hub.listen(1, async () => held);
        const allowed: string[] = [];
        for (const [index, { name, agent, path }] of published.entries()) {
          const isDocument = name === "document.changed";
          const audience = { ...(agent === undefined || isDocument ? {} : { agent }) };
          const event = eventOf(name, isDocument ? { path } : audience);
          bench.hub.publish(1, { ...event, key: String(index) });
          // The rules once more, written independently of the implementation.
          const scope = FEED_SCOPES[name];
          const hasScope = scope === null || held.scopes.includes(scope);
          const isInside = held.boundary.some((at) => at === "/" || path === at || path.startsWith(`${at}/`));
          const { agent: own } = held;
          const isOwn = !own || agent === undefined || agent === own.id || agent === own.name;
          if (hasScope && (isDocument ? isInside : isOwn)) allowed.push(name);
        }
        await bench.pass(100);
        expect(names(await read(reader))).toEqual(["feed.open", ...allowed]);
        reader.close();
      }),
      { numRuns: 300 },
    );
  });

  test("more of an event than its scope allows, even if others get more", async () => {
    const bench = openHub();
    bench.pending = 3;
    const limits = { requests_per_minute: 1, concurrent_tasks: 2, enforcement: "soft" } as const;
    const more = { scope: "settings:write", data: { limits, budget: { credits_per_month: 9 } } } as const;
    bench.present.set("workspace:", {
      ...{ name: "workspace.changed", key: "", data: { status: "stopped" } },
      more,
    });
    const scoped = (...scopes: string[]) => bench.hub.listen(1, async () => ({ ...EVERYTHING, scopes }));
    const [none, settings, approvals] = [scoped(), scoped("settings:write"), scoped("approvals:write")];
    bench.hub.touch(1, "workspace", "");
    await bench.pass(100);
    const plain = [{ status: "stopped" }, bench.usage];
    const told = async (reader: typeof none) => (await read(reader)).slice(1).map(({ data }) => data);
    expect(await told(none)).toEqual(plain);
    expect(await told(settings)).toEqual([{ status: "stopped", ...more.data }, bench.usage]);
    expect(await told(approvals)).toEqual([{ status: "stopped" }, { ...bench.usage, approvals_pending: 3 }]);
  });
});

describe("a listener receives", () => {
  test("feed.open at once, and then changes every 100 ms, each object once in its latest state", async () => {
    const bench = openHub();
    const reader = bench.hub.listen(1, open);
    expect(await read(reader)).toEqual([{ id: 1, name: "feed.open", data: {} }]);
    for (const status of ["queued", "running", "succeeded"]) {
      bench.present.set("task:t", task("t", status));
      bench.hub.touch(1, "task", "t");
    }
    bench.hub.publish(1, eventOf("connector.changed"));
    await bench.pass(99);
    expect(await read(reader)).toEqual([]);
    await bench.pass(1);
    const told = await read(reader);
    expect(told.map(({ id, name, data }) => [id, name, data.status])).toEqual([
      [2, "connector.changed", "ready"],
      [3, "task.changed", "succeeded"],
      [4, "usage", undefined],
    ]);
    expect(bench.looked).toEqual(["task:t"]);
  });

  test("in the next round whatever changes during a lookup", async () => {
    const bench = openHub();
    const reader = bench.hub.listen(1, open);
    bench.present.set("task:t", task("t", "running"));
    bench.hub.touch(1, "task", "t");
    bench.clock.advance(100);
    // The first change is being looked up by now.
    bench.hub.touch(1, "task", "t");
    await bench.pass(0);
    bench.present.set("task:t", task("t", "failed"));
    await bench.pass(100);
    const tasks = (await read(reader)).filter(({ name }) => name === "task.changed");
    expect(tasks.at(-1)?.data.status).toBe("failed");
    expect(bench.looked).toEqual(["task:t", "task:t"]);
  });

  test("its usage at first, and then when it changes, at most once a second", async () => {
    const bench = openHub();
    const reader = bench.hub.listen(1, open);
    const usages = async () =>
      (await read(reader)).flatMap(({ name, data }) => (name === "usage" ? [data.requests_left] : []));
    await bench.pass(100);
    expect(await usages()).toEqual([600]);
    for (let left = 599; left > 592; left--) {
      bench.usage = { ...bench.usage, requests_left: left };
      bench.hub.publish(1, eventOf("connector.changed"));
      await bench.pass(100);
    }
    expect(await usages()).toEqual([]);
    await bench.pass(200);
    await bench.pass(100);
    expect(await usages()).toEqual([593]);
    await bench.pass(10_000);
    expect(await usages()).toEqual([]);
  });

  test("the number of pending approvals, recounted when one has changed", async () => {
    const bench = openHub();
    const reader = bench.hub.listen(1, open);
    await bench.pass(100);
    bench.pending = 2;
    await bench.pass(2_000);
    expect((await read(reader)).at(-1)?.data.approvals_pending).toBe(0);
    bench.hub.touch(1, "approval", "t c");
    await bench.pass(1_100);
    expect((await read(reader)).at(-1)?.data.approvals_pending).toBe(2);
  });

  test("the ledger's size at most once a second", async () => {
    const bench = openHub();
    const reader = bench.hub.listen(1, open);
    for (let size = 1; size <= 50; size++) {
      bench.hub.grown(1, size);
      await bench.pass(10);
    }
    await bench.pass(600);
    const sizes = (await read(reader)).flatMap(({ name, data }) =>
      name === "ledger.grown" ? data.size : [],
    );
    expect(sizes).toEqual([50]);
  });
});

describe("feed.reset", () => {
  test("is sent to a reader that has missed more than 2,000 objects, and its queue is bounded", async () => {
    const bench = openHub();
    const reader = bench.hub.listen(1, open);
    await bench.pass(100);
    await read(reader);
    for (let round = 0; round < 30; round++) {
      for (let index = 0; index < 100; index++) {
        bench.hub.publish(1, { ...eventOf("connector.changed"), key: `${round}.${index}` });
      }
      await bench.pass(100);
    }
    const told = await read(reader);
    const at = told.findIndex(({ name }) => name === "feed.reset");
    // The reader had already asked for the first round. The queue was emptied once and filled again by the last
    // rounds.
    expect([at, told.length < 100 + 1 + 2_000]).toEqual([100, true]);
    expect(told.at(-1)?.name).toBe("connector.changed");
    expect(names(told).filter((name) => name === "feed.reset")).toHaveLength(1);
  });

  test("is sent to everyone after more than 2,000 changes in one round, none of which is kept", async () => {
    const bench = openHub();
    const readers = [bench.hub.listen(1, open), bench.hub.listen(1, open)];
    await bench.pass(100);
    for (const reader of readers) await read(reader);
    for (let index = 0; index < 5_000; index++) bench.hub.touch(1, "task", `t${index}`);
    await bench.pass(100);
    expect(bench.looked).toEqual([]);
    for (const reader of readers) expect(names(await read(reader))).toEqual(["feed.reset"]);
    bench.present.set("task:t", task("t", "queued"));
    bench.hub.touch(1, "task", "t");
    await bench.pass(100);
    for (const reader of readers) expect(names(await read(reader))).toEqual(["task.changed"]);
  });

  test("is sent to everyone once the store can be read again", async () => {
    const bench = openHub();
    const reader = bench.hub.listen(1, open);
    await bench.pass(100);
    await read(reader);
    bench.isBroken = true;
    bench.hub.touch(1, "task", "t");
    await bench.pass(500);
    expect(names(await read(reader))).toEqual([]);
    bench.isBroken = false;
    await bench.pass(1_100);
    expect(names(await read(reader))).toEqual(["feed.reset"]);
  });

  test("is sent to a reader whose rights have changed, without anything that was queued", async () => {
    const bench = openHub();
    let held: FeedRights = EVERYTHING;
    const reader = bench.hub.listen(1, async () => held);
    await bench.pass(100);
    await read(reader);
    // The reader has asked for the first event; the second is queued.
    for (const path of ["secret/read", "secret/waits"]) {
      bench.hub.publish(1, eventOf("document.changed", { path }));
      await bench.pass(100);
    }
    held = { ...EVERYTHING, boundary: ["support"] };
    bench.hub.rightsChanged(1);
    bench.hub.publish(1, eventOf("document.changed", { path: "secret/more" }));
    bench.hub.publish(1, { ...eventOf("document.changed", { path: "support/a" }), key: "own" });
    await bench.pass(100);
    const told = await read(reader);
    expect(told.map(({ name, data }) => data.scope ?? name)).toEqual([
      ...["secret/read", "feed.reset", "support/a"],
      "usage",
    ]);
  });
});

describe("a stream ends", () => {
  test("when its caller's rights end, before it gets anything that this caused", async () => {
    const bench = openHub();
    let held: FeedRights | undefined = EVERYTHING;
    const reader = bench.hub.listen(1, async () => held);
    const other = bench.hub.listen(1, open);
    await bench.pass(100);
    await read(reader);
    await read(other);
    held = undefined;
    bench.hub.rightsChanged();
    bench.hub.publish(1, eventOf("token.changed"));
    await bench.pass(100);
    expect(await next(reader)).toBeNull();
    expect(names(await read(other))).toEqual(["token.changed"]);
  });

  test("when its caller expires, and sends nothing afterwards, not even what was queued", async () => {
    const bench = openHub();
    const until = bench.clock.now() + 30_000;
    const loaded: number[] = [];
    const listen = () =>
      bench.hub.listen(1, async () => {
        loaded.push(bench.clock.now());
        return { ...EVERYTHING, until };
      });
    // The second reader is quiet: it is waiting when its time is up.
    const [late, quiet, other] = [listen(), listen(), bench.hub.listen(1, open)];
    await bench.pass(100);
    for (const reader of [late, quiet, other]) await read(reader);
    let hasEnded = false;
    void next(quiet).then((frames) => {
      hasEnded = frames === null;
    });
    for (let second = 0; second < 29; second++) await bench.pass(1_000);
    await bench.pass(899);
    expect([bench.clock.now(), hasEnded]).toEqual([until - 1, false]);
    expect(await read(late)).toEqual([]);
    bench.hub.publish(1, eventOf("connector.changed"));
    bench.hub.publish(1, eventOf("agent.changed"));
    await bench.pass(1);
    expect([await next(late), await next(quiet), hasEnded]).toEqual([null, null, true]);
    await bench.pass(100);
    expect(names(await read(other))).toEqual(["connector.changed", "agent.changed"]);
    // Each stream's rights were looked up only at its start.
    expect(loaded).toHaveLength(2);
    other.close();
    expect(bench.timers()).toBe(0);
  });

  test("before its queue is read, if its caller has expired by the wall clock", async () => {
    const bench = openHub();
    const until = bench.clock.now() + 3_600_000;
    const reader = bench.hub.listen(1, async () => ({ ...EVERYTHING, until }));
    bench.hub.publish(1, eventOf("connector.changed"));
    await bench.pass(100);
    bench.clock.setWall(until);
    expect(await reader.next()).toBeNull();
    expect(bench.timers()).toBe(0);
  });

  test("with the gateway, and none is opened afterwards", async () => {
    const bench = openHub();
    const reader = bench.hub.listen(1, open);
    const waiting = reader.next().then(() => reader.next());
    bench.hub.end();
    expect(await waiting).toBeNull();
    expect(() => bench.hub.listen(1, open)).toThrow("shutting down");
    expect(bench.timers()).toBe(0);
  });
});

test("whatever changes and however it is read, a patched picture equals the store's in the end", async () => {
  const change = fc.record({
    key: fc.constantFrom("a", "b", "c"),
    status: fc.constantFrom("queued", "running", "awaiting_approval", "failed"),
    ms: fc.constantFrom(0, 30, 100, 1_000),
    isRead: fc.boolean(),
    isReset: fc.constantFrom(false, false, false, true),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 30 }), async (changes) => {
      const bench = openHub();
      const reader = bench.hub.listen(1, open);
      const store = new Map<string, string>();
      let picture = new Map<string, string>();
      const patch = async () => {
        for (const { name, data } of await read(reader)) {
          if (name === "feed.open" || name === "feed.reset") picture = new Map(store);
          else if (name === "task.changed") picture.set(data.id, data.status);
        }
      };
      for (const { key, status, ms, isRead, isReset } of changes) {
        store.set(key, status);
        bench.present.set(`task:${key}`, task(key, status));
        bench.hub.touch(1, "task", key);
        if (isReset) for (let index = 0; index < 2_001; index++) bench.hub.touch(1, "task", `other${index}`);
        await bench.pass(ms);
        if (isRead) await patch();
      }
      await bench.pass(100);
      await bench.pass(100);
      await patch();
      expect([...picture].sort()).toEqual([...store].sort());
      reader.close();
    }),
    { numRuns: 60 },
  );
});
