/** What every engine of the store promises, whatever is behind it. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { CommitWork, Db, Tx } from "../../../src/store/db.ts";
import { outcomes } from "../support.ts";
import { type EngineBench, engines } from "./engines.ts";

const INSERT = "INSERT INTO t (k, v) VALUES ($1, $2)";

describe.each(engines())("on %s", (_, engine) => {
  describe.skipIf(engine.missing !== undefined)("the store", () => {
    let bench: EngineBench;
    let db: Db;

    beforeEach(async () => {
      bench = await engine.open();
      db = bench.db;
    });

    afterEach(() => bench.close());
    afterAll(() => engine.remove());

    const insert = (k: number, v = "x") => db.tx(1, (tx) => tx.run(INSERT, [k, v]));
    const keys = async () => (await db.all<{ k: number }>("SELECT k FROM t ORDER BY k")).map(({ k }) => k);

    describe("a statement", () => {
      test("returns rows, the first row, and the number of changed rows", async () => {
        expect(await db.all("SELECT k FROM t")).toEqual([]);
        expect(await db.get("SELECT k FROM t")).toBeUndefined();
        expect(await db.run("INSERT INTO t (k) VALUES (1), (2), (3)")).toBe(3);
        expect(await db.run("UPDATE t SET v = $1 WHERE k > $2", ["y", 1])).toBe(2);
        expect(await db.run("DELETE FROM t WHERE k = 9")).toBe(0);
        expect(await db.all("SELECT k, v FROM t ORDER BY k")).toEqual([
          { k: 1, v: "x" },
          { k: 2, v: "y" },
          { k: 3, v: "y" },
        ]);
        expect(await db.get<{ k: number }>("SELECT k FROM t ORDER BY k DESC")).toEqual({ k: 3 });
      });

      test("returns the rows that it writes", async () => {
        const written = await db.tx(1, (tx) =>
          tx.all("INSERT INTO t (k) VALUES (1), (2) ON CONFLICT (k) DO NOTHING RETURNING k, v"),
        );
        expect(written).toEqual([
          { k: 1, v: "x" },
          { k: 2, v: "x" },
        ]);
      });

      test.each([
        ["outside transactions", (store: Db) => store.all("SELECT k FROM nowhere")],
        ["inside one", (store: Db) => store.tx(1, (tx) => tx.run("INSERT INTO nowhere VALUES (1)"))],
      ])("with wrong SQL fails by itself %s", async (_name, use) => {
        const [wrong] = await outcomes([use(db)]);
        expect(wrong).toContain("nowhere");
        expect(await insert(1)).toBe(1);
      });
    });

    describe("values are read as they were written:", () => {
      test.each([
        ["the largest number", "n", Number.MAX_SAFE_INTEGER],
        ["the smallest number", "n", Number.MIN_SAFE_INTEGER],
        ["a time in milliseconds", "n", 1_764_000_000_000],
        ["zero", "n", 0],
        ["no number", "n", null],
        ["no bytes", "b", null],
        ["an empty text", "v", ""],
        ["a text of several scripts", "v", "Grüße, 世界 👋🏽 \u202e"],
        ["a text like an escape", "v", "\\x00 \\u0000 \\\\ ' \" $1"],
        ["a text with U+0000", "v", "a\0b\0\0"],
        ["a text with U+0001", "v", "\u0001\u0002\u0001\u0001a\u0001"],
        ["every control character", "v", String.fromCharCode(...Array(32).keys())],
        ["U+FFFF", "v", "\uffff"],
        ["a long text", "v", "ü".repeat(1_000_000)],
      ])("%s", async (_name, column, value) => {
        await db.run(`INSERT INTO t (k, ${column}) VALUES ($1, $2)`, [1, value]);
        expect(await db.get(`SELECT ${column} AS value FROM t`)).toEqual({ value });
        expect(await db.get(`SELECT k FROM t WHERE ${column} = $1`, [value])).toEqual(
          value === null ? undefined : { k: 1 },
        );
      });

      test.each([
        ["no", new Uint8Array()],
        ["all", Uint8Array.from(Array(256).keys())],
        ["a part of a buffer's", new Uint8Array(Buffer.from("abcdef").buffer, 1, 3)],
        ["many", new Uint8Array(3_000_000).fill(0xfe)],
      ])("%s bytes", async (_name, bytes) => {
        await db.run("INSERT INTO t (k, b) VALUES (1, $1)", [bytes]);
        const row = await db.get<{ b: Uint8Array }>("SELECT b FROM t");
        expect(row?.b instanceof Uint8Array).toBe(true);
        expect(Buffer.compare(row?.b ?? new Uint8Array([0]), bytes)).toBe(0);
      });

      test("a lone surrogate, as the character for what cannot be encoded", async () => {
        await db.run("INSERT INTO t (k, v) VALUES (1, $1)", ["a\ud800b"]);
        expect(await db.get("SELECT v FROM t")).toEqual({ v: "a\ufffdb" });
      });

      test("sums, counts and conditions, as numbers", async () => {
        await db.run("INSERT INTO t (k, n) VALUES (1, 4000000000), (2, 5000000000)");
        expect(
          await db.get(
            "SELECT SUM(n) AS sum, COUNT(*) AS count, MAX(n) AS max, EXISTS (SELECT 1 FROM t WHERE k = 2) AS found, n > 4000000000 AS more FROM t WHERE k = 2 GROUP BY n",
          ),
        ).toEqual({ sum: 5_000_000_000, count: 1, max: 5_000_000_000, found: 1, more: 1 });
        expect(await db.get("SELECT SUM(n) AS sum FROM t")).toEqual({ sum: 9_000_000_000 });
        expect(await db.get("SELECT SUM(n) AS sum FROM t WHERE k = 9")).toEqual({ sum: null });
      });

      test("text in the order of its bytes", async () => {
        const texts = [
          "",
          "\0",
          "\u0001",
          "\u0002",
          "A",
          "B",
          "Z",
          "a",
          "a\0",
          "a\u0001",
          "aa",
          "z",
          "Ä",
          "ä",
          "世",
        ];
        for (const [k, v] of texts.toReversed().entries()) await db.run(INSERT, [k, v]);
        const read = await db.all<{ v: string }>("SELECT v FROM t ORDER BY v");
        expect(read.map(({ v }) => v)).toEqual(texts);
        expect(await db.all("SELECT v FROM t WHERE v > $1 AND v <= $2 ORDER BY v", ["A", "a"])).toEqual([
          { v: "B" },
          { v: "Z" },
          { v: "a" },
        ]);
      });
    });

    describe("a transaction that fails", () => {
      test("by throwing undoes all of its writes and none of its neighbours'", async () => {
        const jobs = [
          insert(1),
          db.tx(1, async (tx) => {
            await tx.run(INSERT, [2, "x"]);
            await tx.run("UPDATE t SET v = 'changed' WHERE k = 1");
            throw new Error("no");
          }),
          insert(3),
        ];
        expect(await outcomes(jobs)).toEqual([1, "Error: no", 1]);
        expect(await db.all("SELECT k, v FROM t ORDER BY k")).toEqual([
          { k: 1, v: "x" },
          { k: 3, v: "x" },
        ]);
      });

      test("by throwing before it writes does not disturb its neighbours", async () => {
        const refused = db.tx(1, async (tx) => {
          await tx.all("SELECT k FROM t");
          throw new Error("no");
        });
        expect(await outcomes([insert(1), refused, insert(2)])).toEqual([1, "Error: no", 1]);
        expect(await keys()).toEqual([1, 2]);
      });

      test("by violating a constraint reports that, and is not mistaken for a broken store", async () => {
        await insert(1);
        const [first, second, third] = await outcomes([insert(2), insert(1), insert(3)]);
        expect([first, third]).toEqual([1, 1]);
        expect(second).toMatch(/unique constraint/i);
        expect(await keys()).toEqual([1, 2, 3]);
      });

      test("in a write that nobody waits for is not a success", async () => {
        const written = db.tx(1, async (tx) => {
          tx.write(INSERT, [1, "x"]);
          tx.write(INSERT, [1, "y"]);
          tx.write(INSERT, [2, "z"]);
          return "done";
        });
        const [first, second] = await outcomes([written, insert(3)]);
        expect(first).toMatch(/unique constraint/i);
        expect(second).toBe(1);
        expect(await keys()).toEqual([3]);
      });

      test("in such a write fails with its error, whatever the work does, and so does all that follows", async () => {
        const told: unknown[] = [];
        const careless = db.tx(1, async (tx) => {
          tx.write(INSERT, [1, "x"]);
          tx.write(INSERT, [1, "y"]);
          told.push(...(await outcomes([tx.run(INSERT, [2, "x"])])));
          told.push(...(await outcomes([tx.all("SELECT k FROM t")])));
          return "all is well";
        });
        told.push(...(await outcomes([careless])));
        expect(told).toHaveLength(3);
        for (const each of told) expect(each).toMatch(/unique constraint/i);
        expect(await keys()).toEqual([]);
      });

      test("may translate the engine's error into its own", async () => {
        await insert(1);
        const translated = db.tx(1, async (tx) => {
          try {
            await tx.run(INSERT, [1, "x"]);
          } catch (error) {
            throw new Error("it is there already", { cause: error });
          }
        });
        expect(await outcomes([translated, insert(2)])).toEqual(["Error: it is there already", 1]);
      });

      test("one after another, in a group of many, leaves the others alone", async () => {
        const jobs = Array.from({ length: 40 }, (_, k) =>
          db.tx(1, async (tx) => {
            await tx.run(INSERT, [k % 10 === 5 ? 0 : k, "x"]);
            if (k % 10 === 3) throw new Error("no");
          }),
        );
        const settled = await outcomes(jobs);
        const isKept = (k: number) => k % 10 !== 5 && k % 10 !== 3;
        expect(settled.map((each) => each === undefined)).toEqual(settled.map((_, k) => isKept(k)));
        expect(await keys()).toEqual([...settled.keys()].filter(isKept));
      });
    });

    describe("transactions of one workspace", () => {
      test("see the writes of earlier ones, in order of arrival", async () => {
        const seen = await Promise.all(
          Array.from({ length: 150 }, (_, k) =>
            db.tx(1, async (tx) => {
              tx.write(INSERT, [k, "x"]);
              return (await tx.get<{ n: number }>("SELECT COUNT(*) AS n FROM t"))?.n;
            }),
          ),
        );
        expect(seen).toEqual(Array.from({ length: 150 }, (_, k) => k + 1));
      });

      test("lose no update, however many read and write the same row", async () => {
        await insert(1);
        await db.run("UPDATE t SET n = 0");
        await Promise.all(
          Array.from({ length: 200 }, () =>
            db.tx(1, async (tx) => {
              const row = await tx.get<{ n: number }>("SELECT n FROM t WHERE k = 1");
              tx.write("UPDATE t SET n = $1 WHERE k = 1", [(row?.n ?? 0) + 1]);
            }),
          ),
        );
        expect(await db.get("SELECT n FROM t")).toEqual({ n: 200 });
      });

      test("are not seen by readers until they are committed", async () => {
        const halfway = Promise.withResolvers<void>();
        const resume = Promise.withResolvers<void>();
        const job = db.tx(1, async (tx) => {
          await tx.run(INSERT, [1, "x"]);
          halfway.resolve();
          await resume.promise;
        });
        await halfway.promise;
        const before = await keys();
        const urgently = await db.urgent.all("SELECT k FROM t");
        resume.resolve();
        await job;
        expect([before, urgently]).toEqual([[], []]);
        expect(await keys()).toEqual([1]);
      });
    });

    test("transactions of several workspaces, of none, and of many at once all succeed", async () => {
      const jobs = Array.from({ length: 120 }, (_, k) => {
        const workspaces = [null, 1, [2, 1], [1, 2, 3], 3, []][k % 6] ?? null;
        return db.tx(workspaces, (tx) => tx.run(INSERT, [k, "x"]));
      });
      expect(await outcomes(jobs)).toEqual(Array(120).fill(1));
      expect(await keys()).toHaveLength(120);
    });

    describe("hooks", () => {
      test("of a commit run once it can be read, before the transaction's own promise, in order", async () => {
        const told: string[] = [];
        let read: Promise<number[]> | undefined;
        const job = db.tx(1, async (tx) => {
          await tx.run(INSERT, [1, "x"]);
          tx.onRollback(() => told.push("undone"));
          tx.onCommit(() => {
            read = keys();
            told.push("first");
          });
          tx.onCommit(() => told.push("second"));
        });
        await job.then(() => told.push("resolved"));
        expect(told).toEqual(["first", "second", "resolved"]);
        expect(await read).toEqual([1]);
      });

      test("of a rollback run last registered first, and none of a commit", async () => {
        const told: string[] = [];
        const job = db.tx(1, async (tx) => {
          tx.onCommit(() => told.push("committed"));
          tx.onRollback(() => told.push("first"));
          tx.onRollback(() => told.push("second"));
          throw new Error("no");
        });
        await job.catch(() => told.push("rejected"));
        expect(told).toEqual(["second", "first", "rejected"]);
      });

      test("balance, however often a work runs", async () => {
        let balance = 0;
        const jobs = Array.from({ length: 30 }, (_, k) =>
          db.tx(1, async (tx) => {
            balance += 1;
            tx.onRollback(() => {
              balance -= 1;
            });
            await tx.run(INSERT, [k, "x"]);
            if (k % 7 === 0) throw new Error("no");
            if (k % 11 === 0) await tx.run(INSERT, [k, "x"]);
          }),
        );
        const kept = (await outcomes(jobs)).filter((each) => each === undefined).length;
        expect(balance).toBe(kept);
        expect(await keys()).toHaveLength(kept);
      });
    });

    describe("what the transactions of a commit share", () => {
      class Sum implements CommitWork {
        #sum = 0;
        add(tx: Tx, amount: number): void {
          this.#sum += amount;
          tx.onRollback(() => {
            this.#sum -= amount;
          });
        }
        async write(tx: Tx): Promise<void> {
          await tx.run("INSERT INTO t (k, n) SELECT COUNT(*), $1 FROM t", [this.#sum]);
        }
      }
      class Broken implements CommitWork {
        async write(): Promise<void> {
          throw new Error("it cannot be written");
        }
      }
      const sum = async () => (await db.get<{ sum: number }>("SELECT SUM(n) AS sum FROM t"))?.sum;

      test("is written with them, without what failed", async () => {
        const add = (amount: number, error?: Error) =>
          db.tx(1, async (tx) => {
            tx.shared(Sum).add(tx, amount);
            if (error) throw error;
          });
        const jobs = [add(1), add(10), add(100, new Error("no")), add(1_000)];
        expect(await outcomes(jobs)).toEqual([undefined, undefined, "Error: no", undefined]);
        expect(await sum()).toBe(1_011);
      });

      test("fails with all of them if it cannot be written", async () => {
        const broken = () =>
          db.tx(1, async (tx) => {
            tx.shared(Broken);
            await tx.run("INSERT INTO t (k) SELECT COUNT(*) FROM t");
          });
        expect(await outcomes([broken(), broken()])).toEqual(["StoreUnavailable", "StoreUnavailable"]);
        expect(await keys()).toEqual([]);
        expect(await insert(1)).toBe(1);
      });

      test("fails with all of them if one of its writes fails, although it does not wait for it", async () => {
        class Twice implements CommitWork {
          async write(tx: Tx): Promise<void> {
            tx.write("INSERT INTO t (k) VALUES (1)");
            tx.write("INSERT INTO t (k) VALUES (1)");
          }
        }
        const twice = () => db.tx(1, async (tx) => void tx.shared(Twice));
        expect(await outcomes([twice(), twice()])).toEqual(["StoreUnavailable", "StoreUnavailable"]);
        expect(await keys()).toEqual([]);
      });

      test("cannot be asked for while it is written", async () => {
        class Late implements CommitWork {
          async write(tx: Tx): Promise<void> {
            tx.shared(Sum);
          }
        }
        const late = db.tx(1, async (tx) => void tx.shared(Late));
        expect(await outcomes([late])).toEqual(["StoreUnavailable"]);
      });
    });

    describe("what runs before each commit", () => {
      test("is part of it, and is reported and undone before the transactions", async () => {
        const told: string[] = [];
        db.beforeCommit(async (tx) => {
          tx.onCommit(() => told.push("last work"));
          await tx.run("UPDATE t SET v = 'sealed'");
        });
        await db.tx(1, async (tx) => {
          tx.onCommit(() => told.push("transaction"));
          await tx.run(INSERT, [1, "x"]);
        });
        expect(await db.all("SELECT v FROM t")).toEqual([{ v: "sealed" }]);
        expect(told).toEqual(["last work", "transaction"]);
        expect(() => db.beforeCommit(async () => {})).toThrow("already");
      });

      test("fails the transactions if it fails", async () => {
        const undone: string[] = [];
        let isBroken = true;
        db.beforeCommit(async (tx) => {
          tx.onRollback(() => undone.push("last work"));
          if (isBroken) throw new Error("no");
        });
        const job = db.tx(1, async (tx) => {
          tx.onRollback(() => undone.push("transaction"));
          await tx.run(INSERT, [1, "x"]);
        });
        expect(await outcomes([job])).toEqual(["StoreUnavailable"]);
        expect(undone).toEqual(["transaction", "last work"]);
        isBroken = false;
        expect(await insert(2)).toBe(1);
        expect(await keys()).toEqual([2]);
      });
    });

    describe("a transaction kept beyond its end", () => {
      test.each([
        ["after success", async () => "done"],
        [
          "after failure",
          async () => {
            throw new Error("no");
          },
        ],
      ])("refuses everything %s", async (_name, end) => {
        let kept: Tx | undefined;
        await outcomes([
          db.tx(1, async (tx) => {
            kept = tx;
            return end();
          }),
        ]);
        const uses = [kept?.run(INSERT, [1, "x"]), kept?.get("SELECT 1"), kept?.all("SELECT 1")];
        for (const use of uses) {
          expect(await outcomes([Promise.resolve(use)])).toEqual(["Error: the transaction has ended"]);
        }
        expect(await keys()).toEqual([]);
      });
    });

    describe("closing", () => {
      test("waits for all requested work, and accepts nothing more", async () => {
        let ended = 0;
        for (let k = 0; k < 300; k++) void insert(k).then(() => ended++);
        const closed = db.close();
        const late = [db.tx(1, async () => "late"), db.run(INSERT, [999, "x"])];
        expect(await outcomes(late)).toEqual(["StoreUnavailable", "StoreUnavailable"]);
        await closed;
        expect(ended).toBe(300);
      });
    });

    test("urgent statements do not wait for a transaction that is open", async () => {
      await insert(1);
      const opened = Promise.withResolvers<void>();
      const resume = Promise.withResolvers<void>();
      const slow = db.tx(1, async (tx) => {
        await tx.all("SELECT k FROM t");
        opened.resolve();
        await resume.promise;
      });
      await opened.promise;
      expect(await db.urgent.get("SELECT k FROM t WHERE k = $1", [1])).toEqual({ k: 1 });
      resume.resolve();
      await slow;
      expect(await db.urgent.run("UPDATE t SET v = 'y' WHERE k = 1")).toBe(1);
    });

    test("beyond twenty thousand waiting transactions, the next is refused and the others are not lost", async () => {
      let ran = 0;
      const jobs = Array.from({ length: 20_001 }, () =>
        db.tx(1, async () => {
          ran += 1;
        }),
      );
      const results = await outcomes(jobs);
      expect(results.filter((each) => each === undefined)).toHaveLength(20_000);
      expect(results.at(-1)).toBe("StoreUnavailable");
      expect(ran).toBe(20_000);
    });
  });
});
