/** Ledgers in a store that several nodes share: any node continues any of them, from an end that their key has signed. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { sharedHeadStore } from "../../src/ledger/heads/open-shared-heads.ts";
import { SealedSigningKey } from "../../src/ledger/keys/sealed.ts";
import { type OpenChains, openChains } from "../../src/ledger/open-chains.ts";
import { NoteError } from "../../src/ledger/proof/note.ts";
import { parseSharedHead, sharedHeadText } from "../../src/ledger/proof/shared-head.ts";
import { type Db, StoreUnavailable } from "../../src/store/db.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { FakeClock } from "../support/clock.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";
import { sealedKeys } from "../support/sealed-keys.ts";
import { draft } from "./support.ts";

interface Node extends OpenChains {
  readonly db: Db;
}

const WORKSPACES = [1, 2].map((id) => ({ id, name: `w${id}` }));

describe("the text of a head", () => {
  const hash = fc.uint8Array({ minLength: 32, maxLength: 32 });
  const HEAD = fc.record({
    origin: fc.constantFrom("gatehouse/0/w1", "gatehouse/0123456789abcdef/another"),
    size: fc.nat(),
    root: hash,
    workspaceId: fc.integer({ min: 1, max: 1_000_000 }),
    checkpoints: fc.record({ count: fc.nat(), digest: hash }),
    lastTs: fc.nat(Number.MAX_SAFE_INTEGER),
    lastLeaf: hash,
    keys: hash,
  });
  const signed = (text: string) => `${text}\n— gatehouse/0/w1 ${Buffer.alloc(68, 1).toString("base64")}\n`;

  test("is read as it was written", () => {
    fc.assert(
      fc.property(HEAD, (head) => {
        expect(parseSharedHead(signed(sharedHeadText(head))).head).toEqual(head);
      }),
    );
  });

  test.each([
    ["another line", (text: string) => `${text}more\n`],
    ["a line less", (text: string) => text.replace(/keys .*\n/, "")],
    ["another mark", (text: string) => text.replace("head/3", "head/2")],
    ["a time that is not a number", (text: string) => text.replace(/^last \d+/m, "last 1e3")],
    ["a shorter hash", (text: string) => text.replace(/^(keys ).*/m, "$1AAAA")],
  ])("is refused with %s", (_, change) => {
    fc.assert(
      fc.property(HEAD, (head) => {
        expect(() => parseSharedHead(signed(change(sharedHeadText(head))))).toThrow(NoteError);
      }),
      { numRuns: 20 },
    );
  });
});

describe.skipIf(missingPostgres !== undefined)("in PostgreSQL", () => {
  let database: TestDatabase;
  const nodes: Node[] = [];

  beforeEach(async () => {
    database = await createDatabase();
    const db = await openPostgres({ url: database.url });
    for (const { id, name } of WORKSPACES)
      await db.run("INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, 0)", [id, name]);
    await db.close();
  });
  afterEach(async () => {
    for (const { db } of nodes.splice(0)) await db.close();
    await database.drop();
  });

  async function start(clock = new FakeClock()): Promise<Node> {
    const db = await openPostgres({ url: database.url });
    try {
      const chains = await openChains({
        ...{ db, clock, random: systemRandom, log: silentLog, headStore: sharedHeadStore },
        keyStore: new SealedSigningKey(db, await sealedKeys(db)),
        workspaces: () => WORKSPACES,
        nameOf: (id) => `w${id}`,
      });
      const node = { ...chains, db };
      nodes.push(node);
      return node;
    } catch (error) {
      await db.close();
      throw error;
    }
  }

  /** Every entry's chain, read back: its seq, and whether it names the leaf before it. */
  async function chain(workspaceId: number): Promise<readonly { seq: number; isLinked: boolean }[]> {
    const rows = await database.query<{ seq: string; prev: Buffer; leaf: Buffer }>(
      "SELECT seq, prev, leaf FROM ledger WHERE workspace_id = $1 ORDER BY seq",
      [workspaceId],
    );
    return rows.map(({ seq, prev }, index) => ({
      seq: Number(seq),
      isLinked: prev.equals(rows[index - 1]?.leaf ?? Buffer.alloc(32)),
    }));
  }

  test("three nodes append to the same ledgers at once, and each start finds one chain", async () => {
    const three = [await start(), await start(), await start()];
    const seqs = await Promise.all(
      Array.from({ length: 240 }, (_, index) => {
        const node = three[index % 3] as Node;
        return node.ledger.record(1 + (index % 2), draft({ input: `text ${index}` }));
      }),
    );
    for (const { id } of WORKSPACES) {
      const own = seqs.filter((_, index) => 1 + (index % 2) === id).sort((a, b) => a - b);
      expect(own).toEqual(Array.from({ length: 120 }, (_, index) => index + 1));
      expect(await chain(id)).toEqual(own.map((seq) => ({ seq, isLinked: true })));
    }
    const heads = await Promise.all([...three, await start()].map(({ heads }) => heads.committed(1)));
    expect(new Set(heads.map(({ size, root }) => `${size} ${root.toHex()}`)).size).toBe(1);
    expect(heads[0]?.size).toBe(120);
  });

  test("nodes that start together on an empty store begin each ledger once", async () => {
    const together = await Promise.all([start(), start(), start()]);
    for (const [index, node] of together.entries()) {
      expect(await node.ledger.record(1, draft())).toBe(index + 1);
      expect(node.keys.instance).toBe(together[0]?.keys.instance as string);
    }
  });

  test("proofs on one node cover the entries of another, over several tiles", async () => {
    const [one, two] = [await start(), await start()];
    await Promise.all(Array.from({ length: 300 }, () => one.ledger.record(1, draft())));
    await Promise.all(Array.from({ length: 300 }, () => two.ledger.record(1, draft())));
    for (const node of [one, two]) {
      expect((await node.proofs.inclusion(1, 599))?.head.size).toBe(600);
      expect((await node.proofs.consistency(1, 300))?.head.size).toBe(600);
    }
  });

  test("a transaction that fails leaves no trace in the head", async () => {
    const node = await start();
    await node.ledger.record(1, draft());
    const before = await node.heads.committed(1);
    const failed = node.db.tx(1, async (tx) => {
      await node.ledger.append(tx, 1, draft());
      throw new Error("refused");
    });
    await expect(failed).rejects.toThrow("refused");
    expect(await node.heads.committed(1)).toEqual(before);
    expect(await node.ledger.record(1, draft())).toBe(2);
  });

  test("a workspace that one node adds is continued by another", async () => {
    const [one, two] = [await start(), await start()];
    await one.db.tx(null, async (tx) => {
      await tx.run("INSERT INTO workspaces (id, name, created_at) VALUES (3, 'w3', 0)");
      await one.ledger.begin(tx, 3);
      await one.ledger.append(tx, 3, draft());
    });
    expect(await two.ledger.record(3, draft())).toBe(2);
    await expect(one.db.tx(null, (tx) => one.ledger.begin(tx, 3))).rejects.toThrow("has a ledger already");
  });

  test("times never go backwards, although another node's clock is ahead", async () => {
    const clock = new FakeClock();
    clock.advance(300_000);
    const [one, two] = [await start(clock), await start()];
    await one.ledger.record(1, draft());
    await two.ledger.record(1, draft());
    const rows = await database.query<{ ts: string }>(
      "SELECT bytes::json ->> 'ts' AS ts FROM ledger WHERE workspace_id = 1 ORDER BY seq",
    );
    expect(rows[1]?.ts).toBe(rows[0]?.ts as string);
  });

  describe("a tail that the key has not signed", () => {
    const CHANGES: readonly (readonly [string, string, RegExp])[] = [
      [
        "of another workspace",
        "UPDATE ledger_tails AS t SET head = o.head, edge = o.edge FROM ledger_tails AS o WHERE t.workspace_id = 1 AND o.workspace_id = 2",
        /head of gatehouse\/\w+\/w2, workspace 2/,
      ],
      [
        "with another time",
        "UPDATE ledger_tails SET head = regexp_replace(head, 'last \\d+', 'last 1')",
        /not signed/,
      ],
      ["that is no head", "UPDATE ledger_tails SET head = 'x'", /invalid head/],
      ["that was emptied", "UPDATE ledger_tails SET head = NULL", /missing|no signed head/],
      ["that was removed", "DELETE FROM ledger_tails", /missing|no signed head/],
    ];

    test.each(CHANGES)("%s is not continued, and refuses the next start", async (_, sql, message) => {
      const node = await start();
      for (const { id } of WORKSPACES) await node.ledger.record(id, draft());
      await database.query(sql);
      const refused = node.ledger.record(1, draft());
      await expect(refused).rejects.toThrow(StoreUnavailable);
      await expect(refused).rejects.toThrow(message);
      expect(await chain(1)).toHaveLength(1);
      await expect(node.heads.committed(1)).rejects.toThrow(StoreUnavailable);
      await expect(start()).rejects.toThrow(message);
    });

    test.each([
      ["another tree", "UPDATE ledger_tails SET edge = edge || edge"],
      [
        "other hashes",
        "UPDATE ledger_tails SET edge = set_byte(edge, 5, 255 - get_byte(edge, 5)) WHERE workspace_id = 1",
      ],
    ])("but with %s is not used by a node that has not written it", async (_, sql) => {
      const node = await start();
      await node.ledger.record(1, draft());
      await database.query(sql);
      await expect(start()).rejects.toThrow("tree that was not signed");
      // This node knows the signed tree, and writes it again.
      await node.ledger.record(1, draft());
      expect(await (await start()).ledger.record(1, draft())).toBe(3);
    });

    test("because it is from an earlier commit cannot be continued", async () => {
      const node = await start();
      await node.ledger.record(1, draft());
      const [row] = await database.query<{ head: string; edge: Buffer }>(
        "SELECT head, edge FROM ledger_tails WHERE workspace_id = 1",
      );
      await node.ledger.record(1, draft());
      await database.query("UPDATE ledger_tails SET head = $1, edge = $2 WHERE workspace_id = 1", [
        row?.head,
        row?.edge,
      ]);
      await expect(node.ledger.record(1, draft())).rejects.toThrow(StoreUnavailable);
      expect(await chain(1)).toHaveLength(2);
      await expect(start()).rejects.toThrow(/unsigned tail: entry 2 was added/);
    });
  });

  test("entries that were added without the key are not continued", async () => {
    const node = await start();
    await node.ledger.record(1, draft());
    await database.query(
      "INSERT INTO ledger (workspace_id, seq, prev, leaf, bytes) SELECT 1, 2, leaf, leaf, bytes FROM ledger WHERE workspace_id = 1",
    );
    await expect(node.ledger.record(1, draft())).rejects.toThrow(StoreUnavailable);
    expect(await chain(1)).toHaveLength(2);
    await expect(start()).rejects.toThrow(/unsigned tail/);
  });

  test("once one node has replaced the key and nothing vouches for the new one, a node that knows only the former one signs nothing", async () => {
    const [one, two] = [await start(), await start()];
    await one.ledger.record(1, draft());
    await one.keys.rotate(
      () => [1, 2],
      async (tx, change) => {
        for (const { id, name } of WORKSPACES) {
          await one.ledger.append(tx, id, draft({ detail: { ...change.verifierKeys(name) } }));
        }
      },
    );
    expect(await one.ledger.record(1, draft())).toBe(3);
    await expect(two.ledger.record(1, draft())).rejects.toThrow("has not vouched for the new one");
    expect(await (await start()).ledger.record(1, draft())).toBe(4);
  });
});
