/**
 * Readers that read at their own pace, of a task whose events are stored step by step and then dropped from memory.
 */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { ALL_TEXTS, eraseEvents } from "../../src/tasks/erasure/erase-events.ts";
import { EventHub, type EventReader } from "../../src/tasks/events/hub.ts";
import type { EventLog } from "../../src/tasks/events/log.ts";
import { saveEvents } from "../../src/tasks/events/store.ts";
import { type LedgerBench, openLedger } from "../ledger/support.ts";
import { allEvents } from "../support/events.ts";
import { insertBareTask } from "./bare-task.ts";

let bench: LedgerBench;

beforeEach(async () => {
  bench = await openLedger();
});
afterEach(() => bench.close());

const newTask = () => insertBareTask(bench.db, "running");

/** Stores events as the end of a step does. */
async function save(log: EventLog, id: string): Promise<void> {
  log.flush();
  const from = log.savedUpTo;
  const to = log.nextId - 1;
  if (to === from) return;
  await bench.db.tx(1, async (tx) => {
    saveEvents(tx, 1, id, from + 1, log.after(from));
    tx.onCommit(() => log.saved(to));
  });
}

function publishLong(log: EventLog, kib: number): void {
  log.publish("tool.call", { id: "call_1", tool: "x.y", arguments: "é".repeat(kib * 512) });
}

/** A reader that reads only when told to, and finally to the end. */
class Pace {
  readonly #reader: EventReader;
  readonly #chunks: Uint8Array[] = [];
  #pending: Promise<void> | null = null;

  constructor(reader: EventReader) {
    this.#reader = reader;
  }

  /** Asks for the next frames without waiting for them. */
  ask(): void {
    this.#pending ??= this.#reader.next().then((frames) => {
      this.#pending = null;
      this.#chunks.push(...(frames ?? []));
    });
  }

  async rest(): Promise<number[]> {
    await this.#pending;
    for (let frames = await this.#reader.next(); frames; frames = await this.#reader.next()) {
      this.#chunks.push(...frames);
    }
    const text = Buffer.concat(this.#chunks.map((chunk) => Buffer.from(chunk)));
    return (await allEvents(new Response(text))).map(({ id }) => id);
  }
}

const step = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: "publish" as const }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("long" as const), kib: fc.integer({ min: 60, max: 300 }) }),
  },
  { weight: 2, arbitrary: fc.constant({ kind: "save" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "rest" as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("open" as const), after: fc.nat(12) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("ask" as const), reader: fc.nat(2) }) },
  { weight: 3, arbitrary: fc.constant({ kind: "turn" as const }) },
);

test("each reader gets every event after its position once, in order, whatever is stored and dropped from memory", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 20 }),
      fc.array(step, { maxLength: 60, size: "max" }),
      async (first, steps) => {
        const hub = new EventHub(bench.db);
        const id = await newTask();
        const log = hub.open(id, first);
        const readers: { after: number; pace: Pace }[] = [];
        for (const each of steps) {
          if (each.kind === "publish") log.publish("output.reset", {});
          if (each.kind === "long") publishLong(log, each.kib);
          if (each.kind === "save") await save(log, id);
          if (each.kind === "rest") log.rest();
          if (each.kind === "turn") await new Promise((resolve) => setImmediate(resolve));
          if (each.kind === "open") {
            readers.push({ after: each.after, pace: new Pace(hub.read(1, id, each.after)) });
          }
          if (each.kind === "ask") readers[each.reader]?.pace.ask();
        }
        await save(log, id);
        const last = log.nextId - 1;
        log.close(null);
        hub.close(id);
        for (const { after, pace } of readers) {
          const expected = after < 1 ? [1] : [];
          for (let next = Math.max(first, after + 1); next <= last; next++) expected.push(next);
          expect(await pace.rest()).toEqual(expected);
        }
      },
    ),
    { numRuns: 150 },
  );
});

/** Memory that is counted, and how much of it was ever held. */
function counted() {
  const held: number[] = [];
  return { held, hold: (bytes: number) => void held.push(bytes), release: () => void held.push(0) };
}

/** All parts that a reader gets, each of which holds no more than a block. */
async function partsOf(reader: EventReader): Promise<Uint8Array[]> {
  const all: Uint8Array[] = [];
  for (let parts = await reader.next(); parts; parts = await reader.next()) {
    expect(parts.reduce((bytes, part) => bytes + part.length, 0)).toBeLessThanOrEqual(64 * 1_024);
    all.push(...parts);
  }
  return all;
}

test("a long stored event is read once, into memory that is counted, and handed out in small pieces", async () => {
  const hub = new EventHub(bench.db);
  const id = await newTask();
  const log = hub.open(id, 2);
  log.publish("output.reset", {});
  publishLong(log, 1_000);
  log.publish("output.reset", {});
  await save(log, id);
  log.close(null);
  hub.close(id);
  const queries = spyOn(bench.db, "get");
  const memory = counted();
  const parts = await partsOf(hub.read(1, id, 2, memory));
  // Each piece is a copy: it does not keep the event in memory.
  expect(Math.max(...parts.slice(0, -1).map(({ buffer }) => buffer.byteLength))).toBe(64 * 1_024);
  expect(parts.reduce((bytes, part) => bytes + part.length, 0)).toBeGreaterThan(1_000 * 1_024);
  expect(memory.held).toEqual([expect.any(Number), 0]);
  expect(memory.held[0]).toBeGreaterThan(1_000 * 1_024);
  expect(queries.mock.calls.length).toBeLessThan(6);
  queries.mockRestore();
});

test("a reader that has stopped holds nothing of a long event, and none of a log that has ended", async () => {
  const hub = new EventHub(bench.db);
  const id = await newTask();
  const log = hub.open(id, 2);
  const memory = counted();
  const reader = hub.read(1, id, 1, memory);
  publishLong(log, 1_000);
  const first = await reader.next();
  expect(first?.map(({ buffer }) => buffer.byteLength)).toEqual([64 * 1_024]);
  log.publish("output.reset", {});
  await save(log, id);
  log.close(null);
  hub.close(id);
  // From now on, it reads from the store, where it continues in the middle of the event.
  expect(memory.held).toEqual([]);
  const rest = await partsOf(reader);
  expect(memory.held).toEqual([expect.any(Number), 0]);
  const all = Buffer.concat([...(first ?? []), ...rest]);
  expect((await allEvents(new Response(all))).map((event) => event.id)).toEqual([2, 3]);
});

test("a reader in the middle of a long event that is still in memory ends, too, if its texts are erased", async () => {
  const hub = new EventHub(bench.db);
  const id = await newTask();
  const log = hub.open(id, 2);
  const reader = hub.read(1, id, 1);
  publishLong(log, 1_000);
  await reader.next();
  await save(log, id);
  log.close(null);
  hub.close(id);
  await eraseEvents(bench.db, { workspaceId: 1, id }, ALL_TEXTS);
  hub.erased(id);
  await expect(reader.next()).rejects.toThrow("erased while it was read");
});

test("a reader whose memory is refused ends, and its next attempt gets the event", async () => {
  const hub = new EventHub(bench.db);
  const id = await newTask();
  const log = hub.open(id, 2);
  publishLong(log, 1_000);
  await save(log, id);
  log.close(null);
  hub.close(id);
  const full = {
    release() {},
    hold() {
      throw new Error("full");
    },
  };
  await expect(hub.read(1, id, 1, full).next()).rejects.toThrow("full");
  expect((await partsOf(hub.read(1, id, 1))).length).toBeGreaterThan(10);
});

test("a reader in the middle of a long event ends if its texts are erased, and a new one gets what is left", async () => {
  const hub = new EventHub(bench.db);
  const id = await newTask();
  const log = hub.open(id, 2);
  publishLong(log, 1_000);
  await save(log, id);
  log.close(null);
  hub.close(id);
  const reader = hub.read(1, id, 1);
  await reader.next();
  await eraseEvents(bench.db, { workspaceId: 1, id }, ALL_TEXTS);
  hub.erased(id);
  await expect(reader.next()).rejects.toThrow("erased while it was read");
  const again = new Pace(hub.read(1, id, 1));
  expect(await again.rest()).toEqual([2]);
});

test("a waiting task keeps no stored events in memory", async () => {
  const id = await newTask();
  const log = new EventHub(bench.db).open(id, 2);
  for (let n = 0; n < 10; n++) log.publish("output.reset", {});
  await save(log, id);
  expect(log.after(1).length).toBe(10);
  log.publish("output.reset", {});
  await save(log, id);
  // Events stored just now are still in memory for readers that keep up; those stored earlier are not.
  expect(log.after(1).length).toBe(1);
  log.rest();
  expect([log.after(1).length, log.nextId, log.letGoUpTo]).toEqual([0, 13, 12]);
  log.publish("output.reset", {});
  expect(log.after(12).length).toBe(1);
});
