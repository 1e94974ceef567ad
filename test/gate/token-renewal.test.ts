/** The memory for ended tokens is bounded, and restoring a row does not make an ended token valid again. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createTokens, type Tokens } from "../../src/access/tokens.ts";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { LedgerHistories } from "../../src/gate/ledger-histories.ts";
import { endReplayedTokens } from "../../src/gate/replayed-tokens.ts";
import { TokenRenewal } from "../../src/gate/token-renewal.ts";
import type { Tx } from "../../src/store/db.ts";
import { draft, type LedgerBench, openLedger } from "../ledger/support.ts";

const RENEW_AFTER = 5;

let bench: LedgerBench;
let histories: LedgerHistories;
let tokens: Tokens;
let renewal: TokenRenewal;
beforeEach(async () => {
  bench = await openLedger();
  await start();
});
afterEach(() => bench.close());

/**
 * Reads the history as a start does.
 * @param ends whether to also end tokens whose rows were restored
 */
async function start(ends = false): Promise<void> {
  const { db, ledger, heads, clock } = bench;
  histories = new LedgerHistories({ db, ledger, heads, log: silentLog, acceptChanged: false });
  await histories.read([1, 2].map((id) => ({ id, name: `w${id}` })));
  const read = histories;
  db.seals.outdateTokens((token) => read.isOutdated(token));
  const first = (tx: Tx, id: number) => read.of(id).firstRotations(tx);
  tokens = createTokens(db, clock, createIds(clock, systemRandom), systemRandom, first);
  if (ends) await endReplayedTokens({ db, tokens, clock, histories }, [{ id: 1 }, { id: 2 }]);
  const workspaceIds = () => [1, 2];
  renewal = new TokenRenewal({ db, ledger, histories, workspaceIds, renewAfter: RENEW_AFTER });
}

interface Issued {
  readonly id: string;
  readonly secret: string;
}

const REQUEST = { name: "t", agent: null, scopes: ["admin"], person: null, role: null, expiresIn: null };
async function issue(): Promise<Issued> {
  const { token, secret } = await bench.db.tx(1, (tx) => tokens.issue(tx, 1, "system", REQUEST));
  return { id: token.id, secret };
}
/** Issues a token in the same turn, but after other waiting work such as a renewal. */
async function issueAfter(hops: number): Promise<Issued> {
  for (let hop = 0; hop < hops; hop++) await null;
  return issue();
}
const isValid = async ({ secret }: Issued) => (await tokens.authenticate(secret)) !== undefined;

/** Revokes a token and writes the entry, as a call does. */
async function revoke({ id }: Issued): Promise<void> {
  await bench.db.tx(1, async (tx) => {
    await tokens.revoke(tx, 1, id);
    await bench.ledger.append(tx, 1, draft({ action: "token.revoke", detail: { token: id } }));
  });
}
function rotate({ id }: Issued): Promise<Issued> {
  return bench.db.tx(1, async (tx) => {
    const { secret, rotations } = await tokens.rotate(tx, 1, id, 0);
    const detail = { token: id, rotation: rotations };
    await bench.ledger.append(tx, 1, draft({ action: "token.rotate", detail }));
    return { id, secret };
  });
}

type TokenRow = Record<string, string | number | Uint8Array | null>;
const rowOf = ({ id }: Issued) =>
  bench.own.query<TokenRow, [string]>("SELECT * FROM tokens WHERE id = ?").get(id) as TokenRow;
/** Restores an earlier row, as someone with access to the file can. */
function putBack(row: TokenRow): void {
  const names = Object.keys(row);
  const places = names.map(() => "?").join(", ");
  const sql = `INSERT OR REPLACE INTO tokens (${names.join(", ")}) VALUES (${places})`;
  bench.own.query(sql).run(...Object.values(row));
}

/**
 * Ends as many tokens as are remembered.
 * @returns their rows from before
 */
async function endMany(most = RENEW_AFTER): Promise<{ readonly issued: Issued; readonly row: TokenRow }[]> {
  const ended: { issued: Issued; row: TokenRow }[] = [];
  for (let count = 0; count < most; count++) {
    const issued = count % 2 === 0 ? await issue() : await rotate(await issue());
    ended.push({ issued, row: rowOf(issued) });
    await revoke(issued);
  }
  return ended;
}

const remembered = () => histories.of(1).endedTokens;

test("ended tokens are no longer remembered once there are many, and their restored rows stay invalid, even after a restart", async () => {
  const kept = await issue();
  const old = await rotate(await issue());
  const before = rowOf(old);
  const rotated = await rotate(old);
  const all = await endMany();
  expect(remembered()).toBe(RENEW_AFTER + 1);
  await renewal.keepHouse();
  expect(remembered()).toBe(0);
  for (const round of ["running", "started"]) {
    for (const { row } of all) putBack(row);
    expect([round, await isValid(kept), await isValid(rotated)]).toEqual([round, true, true]);
    for (const { issued } of all) expect(await isValid(issued)).toBe(false);
    await start();
  }
  putBack(before);
  expect([await isValid(old), await isValid(rotated)]).toEqual([false, false]);
});

test("renewals do not change the validity of tokens that are issued, rotated and revoked during and after them", async () => {
  for (let round = 0; round < 3; round++) {
    // More than the number of valid tokens at that time.
    const ended = await endMany(RENEW_AFTER * (round + 2));
    const [busy, leaving] = [await issue(), await issue()];
    const before = rowOf(leaving);
    const [, ...made] = await Promise.all([
      renewal.keepHouse(),
      ...Array.from({ length: 4 }, issue),
      rotate(busy).then(rotate),
      revoke(leaving).then(() => leaving),
      issueAfter(50),
    ]);
    const between = rowOf(busy);
    const last = await rotate(made[4] as Issued);
    expect(remembered()).toBeLessThan(RENEW_AFTER);
    putBack(before);
    for (const { row } of ended) putBack(row);
    await start();
    for (const issued of [...made.slice(0, 4), made[6]]) expect(await isValid(issued as Issued)).toBe(true);
    expect([await isValid(last), await isValid(leaving), await isValid(busy)]).toEqual([true, false, false]);
    const now = rowOf(busy);
    putBack(between);
    await start();
    expect([await isValid(made[4] as Issued), await isValid(last)]).toEqual([false, false]);
    putBack(now);
    expect(await isValid(last)).toBe(true);
    for (const { issued } of ended) expect(await isValid(issued)).toBe(false);
    await start(true);
  }
});

test("a row that someone restored or changed is not renewed", async () => {
  const changed = await issue();
  const all = await endMany();
  bench.own.query("UPDATE tokens SET name = 'x' WHERE id = ?").run(changed.id);
  const [first] = all;
  if (!first) throw new Error("none has ended");
  putBack(first.row);
  await renewal.keepHouse();
  expect(remembered()).toBe(0);
  expect([await isValid(changed), await isValid(first.issued)]).toEqual([false, false]);
  expect(rowOf(first.issued).rotations).toBe(0);
});

test("a renewal that cannot be written changes nothing, and is made later", async () => {
  const kept = await issue();
  const all = await endMany();
  bench.own.exec("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
  expect(await renewal.keepHouse().catch((error) => error.name)).toBe("StoreUnavailable");
  bench.own.exec("DROP TRIGGER full");
  const next = await issue();
  expect([remembered(), rowOf(kept).rotations, rowOf(next).rotations]).toEqual([RENEW_AFTER, 0, 0]);
  await renewal.keepHouse();
  expect([remembered(), await isValid(kept), await isValid(next)]).toEqual([0, true, true]);
  for (const { issued, row } of all) {
    putBack(row);
    expect(await isValid(issued)).toBe(false);
  }
});
