/** Texts are removed from stored events while readers are still reading. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { ALL_TEXTS, type ErasedTexts, eraseEvents } from "../../src/tasks/erasure/erase-events.ts";
import { encodeFrame, type TaskEventName } from "../../src/tasks/events/frames.ts";
import { EventHub, type EventReader } from "../../src/tasks/events/hub.ts";
import { saveEvents } from "../../src/tasks/events/store.ts";
import { type LedgerBench, openLedger } from "../ledger/support.ts";
import { allEvents, type ReadEvent } from "../support/events.ts";
import { insertBareTask } from "./bare-task.ts";

const TASK = { workspaceId: 1, id: "task_1" };
const CALL = (id: string) => ({ id, tool: "time.now", arguments: { said: `argument of ${id}` } });
const FINISHED = {
  id: TASK.id,
  prompt: "the prompt",
  status: "succeeded",
  output: "the answer",
  tools_called: [CALL("call_1"), CALL("call_2")],
};
/** A task's events as published, starting with id 2. */
const EVENTS: readonly (readonly [TaskEventName, object])[] = [
  ["task.started", { model: "m", tier: 1 }],
  ["output.delta", { text: "before the first call" }],
  ["tool.call", CALL("call_1")],
  ["tool.result", { id: "call_1", tool: "time.now", status: "succeeded", duration_ms: 1 }],
  ["output.delta", { text: "between the calls" }],
  ["tool.call", CALL("call_2")],
  ["tool.result", { id: "call_2", tool: "time.now", status: "succeeded", duration_ms: 1 }],
  ["output.reset", {}],
  ["output.delta", { text: "the answer" }],
  ["task.finished", FINISHED],
];
const TEXTS = [
  "the prompt",
  "argument of call_1",
  "argument of call_2",
  "before the first call",
  "between the calls",
  "the answer",
] as const;

let bench: LedgerBench;

beforeEach(async () => {
  bench = await openLedger();
  await insertBareTask(bench.db, "succeeded", TASK.id);
});
afterEach(() => bench.close());

const frames = EVENTS.map(([name, data], index) => encodeFrame(index + 2, name, data as never));

/** Stores the task's events in blocks of this many frames. */
async function store(perBlock: number): Promise<void> {
  await bench.db.tx(1, async (tx) => {
    for (let at = 0; at < frames.length; at += perBlock) {
      saveEvents(tx, TASK.workspaceId, TASK.id, at + 2, frames.slice(at, at + perBlock));
    }
  });
}

async function* bytesOf(reader: EventReader): AsyncGenerator<Uint8Array, void> {
  for (let next = await reader.next(); next !== null; next = await reader.next()) yield* next;
}

const drain = async (reader: EventReader): Promise<ReadEvent[]> =>
  allEvents(new Response(Buffer.concat(await Array.fromAsync(bytesOf(reader)))));
const stored = (after = 0) => drain(new EventHub(bench.db).read(1, TASK.id, after));
const textsIn = (events: readonly ReadEvent[]) => {
  const all = JSON.stringify(events);
  return TEXTS.filter((text) => all.includes(text));
};

const ROWS: readonly [string, ErasedTexts, readonly (typeof TEXTS)[number][]][] = [
  ["nothing", { prompt: false, argumentsOf: new Set(), output: null }, TEXTS],
  ["all", ALL_TEXTS, []],
  ["the prompt", { prompt: true, argumentsOf: new Set(), output: null }, TEXTS.slice(1)],
  [
    "one call's arguments",
    { prompt: false, argumentsOf: new Set(["call_2"]), output: null },
    TEXTS.filter((text) => text !== "argument of call_2"),
  ],
  [
    "the output",
    { prompt: false, argumentsOf: new Set(), output: { afterCall: null } },
    ["the prompt", "argument of call_1", "argument of call_2"],
  ],
  [
    "the output after a call",
    { prompt: false, argumentsOf: new Set(), output: { afterCall: "call_1" } },
    ["the prompt", "argument of call_1", "argument of call_2", "before the first call"],
  ],
];

describe.each([1, 2, 3, 10])("in blocks of %d", (perBlock) => {
  test.each(ROWS)("%s is erased, and everything else stays in place", async (_, texts, left) => {
    await store(perBlock);
    const before = await stored();
    let changes = 0;
    const changing = async () => {
      changes += 1;
    };
    await eraseEvents(bench.db, TASK, texts, changing);
    const after = await stored();
    expect(textsIn(after)).toEqual([...left]);
    expect(changes > 0).toBe(left.length < TEXTS.length);
    const kept = before.filter(({ id }) => after.some((event) => event.id === id));
    expect(after.map(({ id, event }) => [id, event])).toEqual(kept.map(({ id, event }) => [id, event]));
    expect(
      before.filter((event) => !kept.includes(event)).every(({ event }) => event === "output.delta"),
    ).toBe(true);
    for (const { id } of before) expect(await stored(id)).toEqual(after.filter((event) => event.id > id));
    // A second erasure changes nothing.
    const changed = changes;
    await eraseEvents(bench.db, TASK, texts, changing);
    expect([changes, await stored()]).toEqual([changed, after]);
  });
});

test("property: after any series of erasures, exactly the texts that no erasure named remain", async () => {
  const texts = fc.constantFrom(...ROWS);
  await fc.assert(
    fc.asyncProperty(
      fc.array(texts, { maxLength: 5 }),
      fc.integer({ min: 1, max: 10 }),
      async (rows, perBlock) => {
        await bench.db.run("DELETE FROM task_events");
        await store(perBlock);
        for (const [, each] of rows) await eraseEvents(bench.db, TASK, each);
        expect(textsIn(await stored())).toEqual(
          TEXTS.filter((text) => rows.every(([, , left]) => left.includes(text))),
        );
      },
    ),
    { seed: 7, numRuns: 60 },
  );
});

test("arguments in other kinds of events are erased too", async () => {
  const asked = { call_id: "call_1", tool: "x", arguments: { a: "argument of call_1" } };
  await bench.db.tx(1, async (tx) =>
    saveEvents(tx, 1, TASK.id, 2, [encodeFrame(2, "approval.required" as TaskEventName, asked as never)]),
  );
  await eraseEvents(bench.db, TASK, { prompt: false, argumentsOf: new Set(["call_1"]), output: null });
  expect((await stored()).at(-1)?.data).toEqual({ ...asked, arguments: null });
});

describe("a reader that was reading while the task ran", () => {
  /** A reader that had read this many events from memory before the task ended and was erased. */
  async function readerAfter(
    read: number,
  ): Promise<{ readonly reader: EventReader; readonly hub: EventHub }> {
    const hub = new EventHub(bench.db);
    const log = hub.open(TASK.id, 2);
    const reader = hub.read(1, TASK.id, read === 0 ? 0 : 1);
    for (const [index, [name, data]] of EVENTS.slice(0, -1).entries()) {
      if (index < read) {
        log.publish(name, data as never);
        await reader.next();
      }
    }
    for (const [name, data] of EVENTS.slice(read, -1)) log.publish(name, data as never);
    await store(4);
    log.close(frames.at(-1) ?? null);
    hub.close(TASK.id);
    return { reader, hub };
  }

  test.each([1, 2, 5, 9])(
    "and had read %d, reads no more erased text, and continues to the end",
    async (read) => {
      const { reader, hub } = await readerAfter(read);
      await eraseEvents(bench.db, TASK, ALL_TEXTS);
      hub.erased(TASK.id);
      const rest = await drain(reader);
      expect(textsIn(rest)).toEqual([]);
      expect(rest).toEqual(await stored(read + 1));
      expect(rest.at(-1)?.event).toBe("task.finished");
      expect(await reader.next()).toBeNull();
    },
  );

  test("is not disturbed if another task's texts are erased", async () => {
    const { reader, hub } = await readerAfter(2);
    hub.erased("task_2");
    expect(textsIn(await drain(reader))).toContain("the answer");
  });

  test("and has left, is not kept", async () => {
    const { reader, hub } = await readerAfter(2);
    reader.close();
    hub.erased(TASK.id);
    expect(await reader.next()).toBeNull();
  });
});
