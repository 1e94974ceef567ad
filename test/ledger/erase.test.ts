/**
 * Texts are erased in any order, by name or by age. A record accounts for each of them, and nothing else is removed.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { erasePayloads } from "../../src/ledger/erase.ts";
import { readExpiry } from "../../src/ledger/expiry.ts";
import { type ErasedPayload, NAMED_AT_ONCE, namesOf, parseErasure } from "../../src/ledger/proof/erasure.ts";
import { accounts, expiryOf } from "./payload-support.ts";
import { chainFaults, draft, type LedgerBench, openLedger } from "./support.ts";

const HOUR_MS = 3_600_000;

describe("an entry that erased nothing, or has another form, is not read as an erasure", () => {
  const erase = { action: "payload.erase", outcome: "succeeded", seq: 20 };
  const expire = { action: "payload.expire", outcome: "succeeded", seq: 20 };
  test.each<[string, object]>([
    ["another action", { ...erase, action: "task.read", detail: { payloads: "1.input" } }],
    ["a refusal", { ...erase, outcome: "denied", detail: { payloads: "1.input" } }],
    [
      "one that waits for a task's end",
      { ...erase, outcome: "pending", detail: { document: "d", running: 1 } },
    ],
    ["no detail", erase],
    ["null for a detail", { ...erase, detail: null }],
    ["no names", { ...erase, detail: { target_seq: 4 } }],
    ["a count instead of names", { ...erase, detail: { payloads: 4 } }],
    ["invalid names", { ...erase, detail: { payloads: "one.input" } }],
    ["an invalid kind", { ...erase, detail: { payloads: "1.salt" } }],
    ["a seq of 0", { ...erase, detail: { payloads: "0.input" } }],
    ["a seq with a leading zero", { ...erase, detail: { payloads: "01.input" } }],
    ["two spaces", { ...erase, detail: { payloads: "1.input  2.input" } }],
    ["a space at the end", { ...erase, detail: { payloads: "1.input " } }],
    ["one good name and a bad one", { ...erase, detail: { payloads: "1.input 2.both" } }],
    ["itself", { ...erase, detail: { payloads: "20.input" } }],
    ["an entry that came later", { ...erase, detail: { payloads: "1.input 21.input" } }],
    ["without a seq of its own", { ...erase, seq: undefined, detail: { payloads: "1.input" } }],
    ["an age without a position", { ...expire, detail: { payload_days: 180, payloads: 4 } }],
    ["a position that is not a whole number", { ...expire, detail: { up_to: 1.5 } }],
    ["a position in words", { ...expire, detail: { up_to: "7" } }],
    ["place 0", { ...expire, detail: { up_to: 0 } }],
    ["its own position", { ...expire, detail: { up_to: 20 } }],
    ["names under the other action", { ...expire, detail: { payloads: "1.input" } }],
    ["a position under the other action", { ...erase, detail: { up_to: 4 } }],
  ])("%s", (_, entry) => expect(parseErasure(entry)).toBeNull());

  test("a written record is read back: names, no names, and a position", () => {
    const payloads: ErasedPayload[] = [
      { seq: 12, kind: "output" },
      { seq: 3, kind: "output" },
      { seq: 12, kind: "input" },
    ];
    expect(namesOf(payloads)).toBe("3.output 12.input 12.output");
    expect(parseErasure({ ...erase, detail: { payloads: namesOf(payloads), reason: "requested" } })).toEqual({
      payloads: [
        { seq: 3, kind: "output" },
        { seq: 12, kind: "input" },
        { seq: 12, kind: "output" },
      ],
    });
    expect(parseErasure({ ...erase, detail: { payloads: "" } })).toEqual({ payloads: [] });
    expect(parseErasure({ ...expire, detail: { payload_days: 180, payloads: 4, up_to: 19 } })).toEqual({
      upTo: 19,
    });
  });
});

describe("in a ledger", () => {
  let bench: LedgerBench;

  beforeEach(async () => {
    bench = await openLedger();
  });
  afterEach(() => bench.close());

  const cause = { reason: "requested", target_seq: 1 } as const;
  const record = draft({ action: "payload.erase", task: "task_1" });
  const write = (texts: { input?: string; output?: string }, workspace = 1) =>
    bench.db.tx(workspace, (tx) => bench.ledger.append(tx, workspace, { ...draft(), ...texts }));
  const erase = (payloads: readonly ErasedPayload[], workspace = 1) =>
    erasePayloads(bench, workspace, payloads, record, cause);
  const all = (seqs: readonly number[]) => seqs.map((seq) => ({ seq, kind: "input" }) as const);

  test("each erasing transaction is recorded with what it erased, but not with what was already gone", async () => {
    const seqs: number[] = [];
    for (let n = 0; n < 150; n++) seqs.push(await write({ input: `text ${n}` }));
    await erase(all(seqs.slice(0, 3)));
    await erase([...all(seqs), { seq: 1, kind: "output" }, { seq: 999, kind: "input" }]);
    await erase(all(seqs));
    const named = bench.rows().flatMap(({ bytes }) => {
      const erasure = parseErasure(JSON.parse(bytes));
      return erasure && "payloads" in erasure ? [erasure.payloads] : [];
    });
    expect(named.map(({ length }) => length)).toEqual([
      3,
      NAMED_AT_ONCE - 3,
      NAMED_AT_ONCE,
      150 - 2 * NAMED_AT_ONCE,
    ]);
    expect(namesOf(named.flat())).toBe(namesOf(all(seqs)));
    expect(JSON.parse(bench.rows()[150]?.bytes ?? "{}")).toMatchObject({ task: "task_1", detail: cause });
    expect(await accounts(bench.db)).toEqual([]);
  });

  test("nothing is erased if the entry cannot be written", async () => {
    const seqs = [await write({ input: "one" }), await write({ input: "two" })];
    const file = bench.own;
    file.run("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
    await expect(erase(all(seqs))).rejects.toThrow("cannot be written");
    file.run("DROP TRIGGER full");
    expect(await bench.db.all("SELECT seq FROM payloads ORDER BY seq")).toEqual(seqs.map((seq) => ({ seq })));
    await erase(all(seqs));
    expect(await accounts(bench.db)).toEqual([]);
  });

  test("another workspace's texts with the same names stay", async () => {
    for (const workspace of [1, 2]) await write({ input: `of ${workspace}` }, workspace);
    await erase(all([1]));
    expect(await bench.db.all("SELECT workspace_id, body FROM payloads")).toEqual([
      { workspace_id: 2, body: "of 2" },
    ]);
    expect(bench.rows(2)).toHaveLength(1);
  });
});

describe("property: whatever is erased in whatever order", () => {
  const step = fc.oneof(
    fc.record({
      do: fc.constant("write" as const),
      workspace: fc.constantFrom(1, 2),
      texts: fc.array(fc.constantFrom("none", "input", "output", "both"), { minLength: 1, maxLength: 90 }),
    }),
    fc.record({
      do: fc.constant("erase" as const),
      workspace: fc.constantFrom(1, 2),
      chosen: fc.array(
        fc.record({ place: fc.nat(400), kind: fc.constantFrom("input" as const, "output" as const) }),
        { maxLength: 150 },
      ),
    }),
    fc.record({ do: fc.constant("wait" as const), hours: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ do: fc.constant("expire" as const), breakOff: fc.option(fc.nat(3)) }),
  );

  test("each missing text is named by a record or older than one, all others exist, and the chain is valid", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
        const bench = await openLedger();
        try {
          for (const each of steps) {
            if (each.do === "wait") bench.clock.advance(each.hours * HOUR_MS);
            else if (each.do === "expire") await expiryOf(bench, { transactions: each.breakOff }).run();
            else if (each.do === "write") {
              for (const which of each.texts) {
                const texts = {
                  ...(which === "input" || which === "both" ? { input: `in ${which}` } : {}),
                  ...(which === "output" || which === "both" ? { output: `out ${which}` } : {}),
                };
                await bench.db.tx(each.workspace, (tx) =>
                  bench.ledger.append(tx, each.workspace, { ...draft(), ...texts }),
                );
              }
            } else {
              const payloads = each.chosen.map(({ place, kind }) => ({ seq: place + 1, kind }));
              const cause = { reason: "requested", target_seq: 1 } as const;
              const record = draft({ action: "payload.erase" });
              await erasePayloads(bench, each.workspace, payloads, record, cause);
            }
            expect(await accounts(bench.db)).toEqual([]);
          }
          await expiryOf(bench).run();
          for (const workspace of [1, 2]) {
            expect((await readExpiry(bench.db, workspace)).run).toBeNull();
            expect(chainFaults(bench.rows(workspace))).toEqual([]);
          }
          expect(await accounts(bench.db)).toEqual([]);
        } finally {
          await bench.close();
        }
      }),
      { numRuns: 100, seed: 7 },
    );
  }, 120_000);

  test("and expiry erases everything older than its limit, and nothing younger", async () => {
    const ages = fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(ages, async (hours) => {
        const bench = await openLedger();
        try {
          const times: number[] = [];
          for (const pause of hours) {
            bench.clock.advance(pause * HOUR_MS);
            times.push(bench.clock.now());
            await bench.db.tx(1, (tx) => bench.ledger.append(tx, 1, { ...draft(), input: "x" }));
          }
          const limit = bench.clock.now() - 24 * HOUR_MS;
          await expiryOf(bench, { days: 1 }).run();
          const left = await bench.db.all<{ seq: number }>("SELECT seq FROM payloads ORDER BY seq");
          expect(left.map(({ seq }) => seq)).toEqual(
            times.flatMap((time, index) => (time >= limit ? [index + 1] : [])),
          );
        } finally {
          await bench.close();
        }
      }),
      { numRuns: 30, seed: 7 },
    );
  }, 60_000);
});
