import { describe, expect, test } from "bun:test";
import { CallTurns, Inflow, LoopTurns } from "../../src/base/inflow.ts";
import { FakeClock } from "../support/clock.ts";

const MESSAGE = 16 * 1024;
const A_TURN = 32;
const BURST = 20_000;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("one turn of the event loop", () => {
  test("is shared by everything that arrives: at most 32 messages of all sources, or 64 between two turns of others", async () => {
    const turns = new LoopTurns();
    const taken: string[] = [];
    const flood = async (name: string) => {
      for (let count = 0; count < 100; count++) {
        await turns.take(1, MESSAGE);
        taken.push(name);
      }
    };
    const floods = ["a", "b", "c"].map(flood);
    let before = 0;
    while (before < 300) {
      await turn();
      expect(taken.length - before).toBeLessThanOrEqual(2 * A_TURN);
      before = taken.length;
    }
    await Promise.all(floods);
    // From the second turn on, both get a share.
    const fair = taken.slice(2 * A_TURN, 2 * A_TURN + 90);
    for (const name of ["a", "b", "c"])
      expect(fair.filter((each) => each === name).length).toBeGreaterThan(25);
  });

  test("is shared by workspaces in turn, however many streams one of them has", async () => {
    const turns = new LoopTurns();
    const taken: string[] = [];
    const read = async (workspaceId: number, stream: string, parts: number) => {
      for (let part = 0; part < parts; part++) {
        await turns.take(workspaceId, MESSAGE);
        taken.push(stream);
      }
    };
    const many = Array.from({ length: 200 }, (_, index) => read(1, `a${index}`, 10));
    const one = read(2, "b", 20);
    await Promise.all([...many, one]);
    // It has a share of each turn, and does not wait for 200 streams of the other workspace.
    const places = taken.flatMap((stream, place) => (stream === "b" ? [place] : []));
    expect(places).toHaveLength(20);
    expect(places.at(-1)).toBeLessThan((20 + 2) * A_TURN);
    // And its own streams take turns, too.
    const firsts = taken.slice(0, A_TURN + 200).filter((stream) => stream !== "b");
    expect(new Set(firsts).size).toBeGreaterThan(190);
  });

  test("costs messages that fit into it no wait", async () => {
    const turns = new LoopTurns();
    for (let count = 0; count < A_TURN; count++) expect(turns.take(1, MESSAGE)).toBeUndefined();
    const wait = turns.take(1, MESSAGE);
    expect(wait).toBeInstanceOf(Promise);
    await wait;
    expect(turns.take(1, MESSAGE)).toBeUndefined();
  });

  test("is not compensated if something larger than a turn took one", async () => {
    const turns = new LoopTurns();
    expect(turns.take(1, 1000 * A_TURN * MESSAGE)).toBeUndefined();
    await turns.take(1, MESSAGE);
    expect(turns.take(1, MESSAGE)).toBeUndefined();
  });
});

describe("a call", () => {
  test("does not wait while there is room, and waits for a later turn once this one has read much", async () => {
    const turns = new CallTurns(() => 0);
    for (let count = 0; count < 1_000; count++) expect(turns.enter(1)).toBeUndefined();
    turns.spend(A_TURN * MESSAGE);
    expect(turns.enter(2)).toBeInstanceOf(Promise);
  });

  test("waits once a turn has lasted 20 ms; then one long one begins per turn, however short the turns before were, and workspaces take turns", async () => {
    let now = 0;
    const turns = new CallTurns(() => now);
    for (let short = 0; short < 100; short++) {
      expect(turns.enter(1)).toBeUndefined();
      await turn();
    }
    expect(turns.enter(1)).toBeUndefined();
    now += 21;
    const begun: number[] = [];
    const calls = [...Array(100).fill(1), 2].map(async (workspaceId: number) => {
      await turns.enter(workspaceId);
      now += 45;
      begun.push(workspaceId);
    });
    expect(begun).toEqual([]);
    for (let before = 0; begun.length < calls.length; before = begun.length) {
      await turn();
      // The turn that this test waits for may share its place with the next one.
      expect(begun.length - before).toBeLessThanOrEqual(2);
    }
    expect(begun.indexOf(2)).toBeLessThanOrEqual(2);
    expect(begun.filter((each) => each === 1)).toHaveLength(100);
  });

  test("that is short begins with others in one turn, so that their writes share a commit", async () => {
    let now = 0;
    const turns = new CallTurns(() => now);
    turns.enter(1);
    now += 21;
    let begun = 0;
    const calls = Array.from({ length: 1_000 }, async () => {
      await turns.enter(1);
      now += 0.05;
      begun += 1;
    });
    let passed = 0;
    for (; begun < calls.length; passed++) await turn();
    expect(passed).toBeLessThan(1_000 / 20);
  });

  test("goes on at once when nothing waits any more", async () => {
    let now = 0;
    const turns = new CallTurns(() => now);
    turns.enter(1);
    now += 21;
    const waits = [turns.enter(1), turns.enter(2)];
    await Promise.all(waits);
    await turn();
    await turn();
    expect(turns.enter(1)).toBeUndefined();
  });
});

describe("a call's reads", () => {
  const text = A_TURN * MESSAGE;

  test("wait for later turns once one has read much", async () => {
    const turns = new CallTurns(() => 0);
    let reads = 0;
    const read = async () => {
      await turns.read(1);
      reads += 1;
      turns.spend(text);
    };
    expect(turns.read(1)).toBeUndefined();
    turns.spend(text);
    const all = [read(), read(), read()];
    for (let before = 0; reads < 3; before = reads) {
      await turn();
      expect(reads - before).toBeLessThanOrEqual(2);
    }
    await Promise.all(all);
  });

  test("come before its workspace's other calls, so that few calls hold what they have read", async () => {
    const turns = new CallTurns(() => 0);
    turns.spend(text);
    let [held, most, done] = [0, 0, 0];
    const call = async () => {
      await turns.enter(1);
      for (let read = 0; read < 5; read++) {
        await turns.read(1);
        turns.spend(text);
        if (read === 0) held += 1;
        most = Math.max(most, held);
      }
      held -= 1;
      done += 1;
    };
    await Promise.all(Array.from({ length: 200 }, call));
    expect(done).toBe(200);
    expect(most).toBeLessThanOrEqual(8);
  });

  test.each([1, 5, 20])("of %d long walks do not hold up calls", async (count) => {
    const turns = new CallTurns(() => 0);
    let isOver = false;
    const walk = async () => {
      while (!isOver) {
        await turns.read(1);
        turns.spend(text);
      }
    };
    const walks = Array.from({ length: count }, walk);
    await Promise.all(Array.from({ length: 100 }, () => turns.enter(1)));
    isOver = true;
    await Promise.all(walks);
  });
});

describe("a source", () => {
  const message = { bytes: 0, messages: 1 };

  /** How many of `count` messages pass before the clock has to move. */
  function flood(inflow: Inflow, count: number) {
    const seen = { count: 0 };
    void (async () => {
      for (let sent = 0; sent < count; sent++) {
        await inflow.take(message);
        seen.count++;
      }
    })();
    return async () => {
      for (let last = -1; seen.count !== last; ) {
        last = seen.count;
        await turn();
        await turn();
      }
      return seen.count;
    };
  }

  test("may send 20,000 messages at once, and a thousand per second after that", async () => {
    const clock = new FakeClock();
    const through = flood(new Inflow(clock, 1), BURST + 10_000);
    expect(await through()).toBe(BURST);
    for (let ms = 0; ms < 1_000; ms++) {
      clock.advance(1);
      await turn();
    }
    expect(await through()).toBeGreaterThanOrEqual(BURST + 999);
    expect(await through()).toBeLessThanOrEqual(BURST + 1_000);
  });

  test("has its burst again after a pause, and no more than that", async () => {
    const clock = new FakeClock();
    const inflow = new Inflow(clock, 1);
    expect(await flood(inflow, BURST)()).toBe(BURST);
    clock.advance(3_600_000);
    expect(await flood(inflow, BURST + 1_000)()).toBe(BURST);
  });

  test("that answers requests does not use up its rate", async () => {
    const inflow = new Inflow(new FakeClock(), 1);
    for (let count = 0; count < 2 * BURST; count++) {
      await inflow.take(message);
      inflow.refund();
    }
  });

  test("is also charged for bytes and for lines", async () => {
    for (const arrival of [{ bytes: MESSAGE }, { bytes: 0, lines: 64 }]) {
      const inflow = new Inflow(new FakeClock(), 1);
      for (let count = 0; count < BURST; count++) await inflow.take(arrival);
      let isThrough = false;
      void inflow.take(arrival)?.then(() => {
        isThrough = true;
      });
      for (let turns = 0; turns < 10; turns++) await turn();
      expect(isThrough).toBe(false);
    }
  });
});
