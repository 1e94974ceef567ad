import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FairSlots } from "../../src/limits/fair-slots.ts";

const slotsOf = (slots: number, keptForOthers = 0, waitingPerWorkspace = 1_000, waiting = 1_000): FairSlots =>
  new FairSlots({ slots, keptForOthers, waitingPerWorkspace, waiting });

/** Records who got a slot, in order and by name; a slot is returned by its holder's name. */
function room(slots: FairSlots) {
  const entered: string[] = [];
  const releases = new Map<string, () => void>();
  return {
    entered,
    enter(workspaceId: number, name: string, signal?: AbortSignal): Promise<string> {
      return slots.enter(workspaceId, signal).then(
        (release) => {
          if (release === null) return "refused";
          entered.push(name);
          releases.set(name, release);
          return "entered";
        },
        (reason: unknown) => String(reason),
      );
    },
    async leave(...names: readonly string[]) {
      for (const name of names) releases.get(name)?.();
      await Bun.sleep(0);
    },
  };
}

test("the last slots are not given to a workspace that already has some, whoever came first", async () => {
  const slots = slotsOf(4, 2);
  const { enter, leave, entered } = room(slots);
  for (const name of ["a1", "a2", "a3", "a4"]) void enter(1, name);
  await Bun.sleep(0);
  expect(entered).toEqual(["a1", "a2"]);
  await enter(2, "b1");
  await enter(3, "c1");
  expect(entered).toEqual(["a1", "a2", "b1", "c1"]);
  void enter(4, "d1");
  await leave("a1");
  // Workspace 4 holds no slot, so it goes before the one that has waited longer.
  expect(entered.at(-1)).toBe("d1");
  await leave("a2", "b1", "c1", "d1");
  expect(entered.slice(5)).toEqual(["a3", "a4"]);
});

test("a free slot goes to the workspace with the fewest, then by turns", async () => {
  const { enter, leave, entered } = room(slotsOf(3));
  for (const name of ["a1", "a2", "a3", "a4", "a5", "a6"]) void enter(1, name);
  for (const name of ["b1", "b2"]) void enter(2, name);
  void enter(3, "c1");
  await Bun.sleep(0);
  for (const name of ["a1", "a2", "a3", "b1", "b2"]) await leave(name);
  expect(entered).toEqual(["a1", "a2", "a3", "b1", "c1", "a4", "b2", "a5"]);
});

describe("a call that gives up", () => {
  test("while waiting leaves the queue to the others", async () => {
    const slots = slotsOf(1);
    const { enter, leave, entered } = room(slots);
    const control = new AbortController();
    await enter(1, "a");
    const given = enter(1, "b", control.signal);
    void enter(1, "c");
    control.abort("gone");
    expect(await given).toBe("gone");
    await leave("a");
    expect(entered).toEqual(["a", "c"]);
  });

  test("before it waits takes nothing", async () => {
    const slots = slotsOf(1);
    expect(await room(slots).enter(1, "a", AbortSignal.abort("gone"))).toBe("gone");
    expect([slots.taken, slots.waiting]).toEqual([0, 0]);
  });
});

test("a slot is returned only once, however often it is released", async () => {
  const slots = slotsOf(2);
  const { enter, leave } = room(slots);
  await enter(1, "a");
  await enter(1, "b");
  await leave("a", "a", "a");
  expect(slots.taken).toBe(1);
});

test("calls beyond the queue's length are refused, one workspace's before those of others", async () => {
  const { enter } = room(slotsOf(1, 0, 2, 3));
  await enter(1, "a");
  void enter(1, "b");
  void enter(1, "c");
  expect(await enter(1, "d")).toBe("refused");
  void enter(2, "e");
  expect(await enter(3, "f")).toBe("refused");
});

test("whatever arrives, leaves and gives up, the limit is never exceeded, and nobody waits while a slot is free", async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("enter" as const), workspace: fc.integer({ min: 1, max: 4 }) }),
    fc.record({ kind: fc.constant("leave" as const), which: fc.nat(30) }),
    fc.record({ kind: fc.constant("abort" as const), which: fc.nat(30) }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 5 }),
      fc.array(step, { maxLength: 60 }),
      async (most, steps) => {
        const slots = slotsOf(most, 1);
        const held: { readonly workspace: number; readonly release: () => void }[] = [];
        const waiting: { readonly workspace: number; readonly control: AbortController }[] = [];
        for (const given of steps) {
          if (given.kind === "enter") {
            const { workspace } = given;
            const mine = { workspace, control: new AbortController() };
            waiting.push(mine);
            slots
              .enter(workspace, mine.control.signal)
              .then(
                (release) => release && held.push({ workspace, release }),
                () => {},
              )
              .finally(() => waiting.splice(waiting.indexOf(mine), 1));
          } else if (given.kind === "leave")
            held.splice(given.which % Math.max(1, held.length), 1)[0]?.release();
          else waiting[given.which % Math.max(1, waiting.length)]?.control.abort();
          await Bun.sleep(0);
          expect([slots.taken, slots.waiting]).toEqual([held.length, waiting.length]);
          expect(held.length).toBeLessThanOrEqual(most);
          const free = most - held.length;
          const holders = new Set(held.map(({ workspace }) => workspace));
          for (const { workspace } of waiting)
            expect(free).toBeLessThanOrEqual(holders.has(workspace) ? 1 : 0);
        }
        for (const { control } of [...waiting]) control.abort();
        for (const { release } of held) release();
        await Bun.sleep(0);
        expect([slots.taken, slots.waiting]).toEqual([0, 0]);
      },
    ),
    { numRuns: 100 },
  );
});
