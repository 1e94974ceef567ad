import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { LocalReservations } from "../../src/limits/local-reservations.ts";
import type { QueueTicket } from "../../src/limits/reservations.ts";
import type { Tx } from "../../src/store/db.ts";

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 7 });

/** A transaction that is never rolled back. */
const TX = { onRollback() {} } as unknown as Tx;
const take = (reservations: LocalReservations, owner: string, budgets: readonly string[], amount: number) =>
  reservations.take(TX, { workspaceId: 1, owner, budgets, amount });

const NEVER = new AbortController().signal;
/** Lets everything that is ready proceed. */
const turns = () => Bun.sleep(0);

describe("reservations", () => {
  test("are summed per budget, whatever is taken and returned, by whom and in any order", () => {
    const owner = fc.constantFrom("a", "b", "c", "d", "e");
    const budgets = fc.subarray(["day", "month", "other"]);
    const amount = fc.oneof(fc.integer({ min: 0, max: 1_000 }), fc.constant(Number.MAX_SAFE_INTEGER));
    const step = fc.oneof(fc.record({ take: owner, budgets, amount }), fc.record({ release: owner }));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 100 }), (played) => {
        const reservations = new LocalReservations();
        const held = new Map<string, { budgets: readonly string[]; amount: number }>();
        for (const each of played) {
          if ("take" in each) {
            expect(take(reservations, each.take, each.budgets, each.amount)).toBe(!held.has(each.take));
            if (!held.has(each.take)) held.set(each.take, each);
          } else {
            reservations.release(each.release);
            held.delete(each.release);
          }
          expect(reservations.leases).toBe(held.size);
          for (const budget of ["day", "month", "other"]) {
            const amounts = [...held.values()].filter((lease) => lease.budgets.includes(budget));
            const sum = amounts.reduce((all, lease) => all + BigInt(lease.amount), 0n);
            expect(reservations.reserved(budget)).toBe(Number(sum));
          }
        }
      }),
    );
  });

  test("a budget named twice is reserved from once", () => {
    const reservations = new LocalReservations();
    take(reservations, "a", ["day", "day"], 5);
    expect(reservations.reserved("day")).toBe(5);
    reservations.release("a");
    expect(reservations.reserved("day")).toBe(0);
  });
});

describe("the queue for a budget", () => {
  /** Records in `looks` each turn that this caller gets. */
  async function watch(
    place: QueueTicket,
    looks: string[],
    name: string,
    signal: AbortSignal,
  ): Promise<void> {
    for (;;) {
      await place.turn(signal);
      looks.push(name);
    }
  }

  test("lets only the first check until it has left", async () => {
    const reservations = new LocalReservations();
    take(reservations, "out", ["day"], 1);
    take(reservations, "out too", ["day"], 1);
    const end = new AbortController();
    const looks: string[] = [];
    const [first, second] = [reservations.join("day"), reservations.join("day")];
    const watching = [watch(first, looks, "first", end.signal), watch(second, looks, "second", end.signal)];
    await turns();
    expect(looks).toEqual([]);
    second.wake();
    await turns();
    expect(looks).toEqual([]);
    reservations.release("out");
    await turns();
    expect(looks).toEqual(["first"]);
    first.wake();
    await turns();
    expect(looks).toEqual(["first", "first"]);
    first.leave();
    first.leave();
    await turns();
    expect(looks).toEqual(["first", "first", "second"]);
    expect(reservations.waiting("day")).toBe(1);
    second.leave();
    expect(reservations.waiting("day")).toBe(0);
    end.abort();
    await Promise.allSettled(watching);
  });

  test("is left by a caller that gives up, with the signal's reason, and the next one checks", async () => {
    const reservations = new LocalReservations();
    const giveUp = new AbortController();
    const [first, second] = [reservations.join("day"), reservations.join("day")];
    const turn = first.turn(giveUp.signal).finally(() => first.leave());
    const reason = new Error("enough");
    giveUp.abort(reason);
    expect(await turn.catch((error: unknown) => error)).toBe(reason);
    await second.turn(NEVER);
    expect(await first.turn(giveUp.signal).catch((error: unknown) => error)).toBe(reason);
  });

  test("a return before anybody waits for it is not missed", async () => {
    const reservations = new LocalReservations();
    take(reservations, "out", ["day", "month"], 1);
    const place = reservations.join("month");
    reservations.release("out");
    await place.turn(NEVER);
  });

  test("gives nothing twice, loses nobody and keeps the order, whatever is reserved and whoever gives up", async () => {
    const caller = fc.record({ holds: fc.integer({ min: 0, max: 3 }), givesUp: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(
        fc.array(caller, { maxLength: 30 }),
        fc.integer({ min: 1, max: 4 }),
        async (callers, limit) => {
          const reservations = new LocalReservations();
          const joined: number[] = [];
          const admitted: number[] = [];
          let most = 0;
          async function run(holds: number, name: number, signal: AbortSignal): Promise<void> {
            let place: QueueTicket | null = null;
            const isHindered = () =>
              reservations.reserved("day") >= limit || (place === null && reservations.waiting("day") > 0);
            try {
              while (isHindered()) {
                if (place === null) {
                  place = reservations.join("day");
                  joined.push(name);
                }
                await place.turn(signal);
              }
              if (place !== null) admitted.push(name);
              take(reservations, `${name}`, ["day"], 1);
              most = Math.max(most, reservations.reserved("day"));
            } finally {
              (place as QueueTicket | null)?.leave();
            }
            for (let turn = 0; turn < holds; turn++) await turns();
            reservations.release(`${name}`);
          }
          const left = new Set<number>();
          await Promise.all(
            callers.map(async ({ holds, givesUp }, name) => {
              const control = new AbortController();
              const done = run(holds, name, control.signal);
              if (givesUp) queueMicrotask(() => control.abort());
              await done.catch(() => left.add(name));
            }),
          );
          expect(most).toBeLessThanOrEqual(limit);
          expect(admitted).toEqual(joined.filter((name) => !left.has(name)));
          expect([reservations.leases, reservations.reserved("day"), reservations.waiting("day")]).toEqual([
            0, 0, 0,
          ]);
        },
      ),
      { numRuns: 200 },
    );
  });
});
