/** Callers of open streams, on a separate store: how often their rights are rechecked, and when that ends. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Caller } from "../../src/access/caller.ts";
import { createSessions } from "../../src/access/sessions.ts";
import { createTokens, type Tokens } from "../../src/access/tokens.ts";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { OpenCallers } from "../../src/http/streams/open-callers.ts";
import type { Sql } from "../../src/store/db.ts";
import type { EventReader } from "../../src/tasks/events/hub.ts";
import { type LedgerBench, openLedger } from "../ledger/support.ts";
import { until } from "../tasks/support.ts";

const DAY = 86_400_000;

let bench: LedgerBench;
let tokens: Tokens;
let callers: OpenCallers;
let looks: number;
let isBroken: boolean;
/** The delays of all timers. */
let waits: number[];
beforeEach(async () => {
  bench = await openLedger();
  const { db, clock } = bench;
  [looks, isBroken, waits] = [0, false, []];
  const sql: Sql = {
    seals: db.seals,
    all: (text, params) => db.all(text, params),
    run: (text, params) => db.run(text, params),
    async get(text, params) {
      looks += 1;
      if (isBroken) throw new Error("the store cannot be read");
      return db.get(text, params);
    },
  };
  const after = clock.after.bind(clock);
  clock.after = (ms, task) => {
    waits.push(ms);
    return after(ms, task);
  };
  const ids = createIds(clock, systemRandom);
  tokens = createTokens(db, clock, ids, systemRandom);
  const lifetimeMs = DAY;
  const sessions = createSessions({ db, tokens, clock, ids, random: systemRandom, lifetimeMs });
  const gate = { rightsEnd: ({ grant }: Caller) => grant?.endsAt(sql) ?? Number.POSITIVE_INFINITY };
  callers = new OpenCallers({ gate, tokens, sessions, clock, log: silentLog });
});
afterEach(() => bench.close());

async function issue(
  expiresIn: number | null = null,
  agent: Caller["agent"] = null,
): Promise<Caller & { readonly id: string }> {
  const request = { name: "t", agent, scopes: ["admin"], person: null, role: null, expiresIn };
  const { token, secret } = await bench.db.tx(1, (tx) => tokens.issue(tx, 1, "system", request));
  const caller = (await tokens.authenticate(secret)) as Caller;
  return { id: token.id, ...caller };
}

/** A reader that always has something to read. */
function talking(): EventReader {
  return { next: async () => [new Uint8Array(1)], close() {} };
}

/** A reader that has nothing to read until it is closed. */
function quiet(): EventReader & { isClosed: boolean } {
  const over = Promise.withResolvers<null>();
  const reader = {
    isClosed: false,
    next: () => over.promise,
    close() {
      reader.isClosed = true;
      over.resolve(null);
    },
  };
  return reader;
}

test("an invalid caller gets nothing, nor does one that cannot be looked up", async () => {
  const revoked = await issue();
  await bench.db.tx(1, (tx) => tokens.revoke(tx, 1, revoked.id));
  expect(await callers.guard(talking(), revoked).next()).toBeNull();
  const unknown = await issue();
  await bench.db.tx(1, async (tx) => tokens.changeWith(tx, { token: "tok_other" }));
  isBroken = true;
  expect(await callers.guard(talking(), unknown).next()).toBeNull();
  expect(callers.size).toBe(0);
});

test("a caller whose agent is archived gets nothing from then on", async () => {
  await bench.db.run(
    `INSERT INTO agents (id, workspace_id, name, owner, memory_scope, tier_policy, tools, max_steps, status, version,
       created_at, updated_at) VALUES (1, 1, 'clerk', '', '', '', '', 1, 'active', 1, 0, 0)`,
  );
  const opener = await issue(null, { id: 1, name: "clerk" });
  const reader = callers.guard(talking(), opener);
  expect(await reader.next()).toHaveLength(1);
  await bench.db.tx(1, async (tx) => {
    tokens.changeWith(tx, { token: "tok_other" });
    await tx.run("UPDATE agents SET archived_at = 1 WHERE id = 1");
  });
  expect(await reader.next()).toBeNull();
});

test("data read before the token was revoked is not sent afterwards", async () => {
  const opener = await issue();
  const reader = callers.guard(talking(), opener);
  expect(await reader.next()).toHaveLength(1);
  await bench.db.tx(1, (tx) => tokens.revoke(tx, 1, opener.id));
  expect(await reader.next()).toBeNull();
});

test("nothing is sent after its end by the wall clock, whatever timers say", async () => {
  const opener = await issue(DAY);
  const reader = callers.guard(talking(), opener);
  expect(await reader.next()).toHaveLength(1);
  bench.clock.setWall(bench.clock.now() + DAY);
  expect(await reader.next()).toBeNull();
});

test("many streams of two tokens cause two lookups per change, and none otherwise", async () => {
  const openers = [await issue(), await issue()];
  const readers = openers.flatMap((opener) =>
    Array.from({ length: 50 }, () => callers.guard(talking(), opener)),
  );
  const readAll = () => Promise.all(readers.map((reader) => reader.next()));
  for (let round = 0; round < 3; round++) await readAll();
  expect([looks, callers.size]).toEqual([0, 2]);
  const other = await issue();
  await bench.db.tx(1, (tx) => tokens.revoke(tx, 1, other.id));
  for (let round = 0; round < 3; round++) expect(await readAll()).not.toContain(null);
  expect(looks).toBe(2);
  for (const reader of readers) reader.close();
  expect(callers.size).toBe(0);
  await bench.db.tx(1, async (tx) => tokens.changeWith(tx, { token: "tok_other" }));
  await new Promise((resolve) => setImmediate(resolve));
  expect(looks).toBe(2);
});

test("a quiet stream ends at an expiry months away, although no timer can run that long", async () => {
  const reader = quiet();
  callers.guard(reader, await issue(90 * DAY));
  await until(() => waits.length > 0);
  bench.clock.advance(90 * DAY - 1);
  expect(reader.isClosed).toBe(false);
  bench.clock.advance(1);
  expect([reader.isClosed, callers.size, looks]).toEqual([true, 0, 0]);
  // A longer timeout would fire at once (HTML, section 8.7; 32 bits).
  expect(Math.max(...waits)).toBeLessThan(2 ** 31);
});
