/** The ledgers of nodes that share a store, without gateways. */
import { createSecretKey } from "node:crypto";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import type { LedgerConfig } from "../../src/config/config.ts";
import { LedgerHistories } from "../../src/gate/ledger-histories.ts";
import { sharedHeadStore } from "../../src/ledger/heads/open-shared-heads.ts";
import { SealedSigningKey } from "../../src/ledger/keys/sealed.ts";
import { type OpenLedger, openLedger } from "../../src/ledger/open.ts";
import type { Nodes } from "../../src/nodes/nodes.ts";
import { openNodes } from "../../src/nodes/shared/open-nodes.ts";
import type { Db } from "../../src/store/db.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { RowSeals } from "../../src/store/seals/seals.ts";
import { createDatabase, type TestDatabase } from "../support/postgres/database.ts";
import { sealedKeys } from "../support/sealed-keys.ts";

const SECRET = createSecretKey(Buffer.alloc(32, 7));

export interface LedgerNode extends OpenLedger {
  readonly db: Db;
  readonly nodes: Nodes;
  readonly histories: LedgerHistories;
  /** Kinds of faults that this node has found. */
  readonly found: string[];
  /** Leaves the nodes, so that others take over, and goes on with what it is doing. */
  leave(): Promise<void>;
  /** Ends as a process that is killed: nothing more is signed. */
  close(): Promise<void>;
}

export interface LedgerNodes {
  readonly database: TestDatabase;
  /** The workspaces `w1`, `w2` and so on. */
  readonly workspaces: { readonly id: number; readonly name: string }[];
  /** @param url the database's, or that of a proxy before it. Default: the database's. */
  open(config?: Partial<LedgerConfig>, clock?: Clock, url?: string): Promise<LedgerNode>;
  close(): Promise<void>;
}

export async function openLedgerNodes(): Promise<LedgerNodes> {
  const database = await createDatabase();
  const workspaces = [1, 2].map((id) => ({ id, name: `w${id}` }));
  const first = await openPostgres({ url: database.url, seals: new RowSeals(SECRET) });
  for (const { id, name } of workspaces)
    await first.run("INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, 0)", [id, name]);
  await first.close();
  const opened = new Set<LedgerNode>();

  async function open(
    config: Partial<LedgerConfig> = {},
    clock: Clock = systemClock,
    url = database.url,
  ): Promise<LedgerNode> {
    const db = await openPostgres({ url, seals: new RowSeals(SECRET) });
    const ids = createIds(clock, systemRandom);
    const log = silentLog;
    const nodes = await openNodes({
      db,
      url: database.url,
      clock: systemClock,
      log,
      newId: () => ids("node"),
    });
    const found: string[] = [];
    const ledgers = await openLedger({
      ...{ db, nodes, clock, log, random: systemRandom, headStore: sharedHeadStore },
      config: { checkpointEvery: 8, checkpointSeconds: 3_600, payloadDays: 180, ...config },
      keyStore: new SealedSigningKey(db, await sealedKeys(db)),
      noticed: (kind) => found.push(kind),
      workspaces: () => workspaces,
      nameOf: (id) => `w${id}`,
    });
    const histories = new LedgerHistories({
      ...{ db, log, ledger: ledgers.ledger, heads: ledgers.heads, faults: ledgers.faults },
      ...{ isShared: true, grownElsewhere: ledgers.elsewhere.grown, acceptChanged: false },
    });
    await histories.read(workspaces);
    let left: Promise<void> | null = null;
    const leave = () => {
      left ??= nodes.close();
      return left;
    };
    const node: LedgerNode = {
      ...ledgers,
      ...{ db, nodes, histories, found, leave },
      async close() {
        if (!opened.delete(node)) return;
        await leave();
        await db.close();
      },
    };
    opened.add(node);
    return node;
  }

  return {
    ...{ database, workspaces, open },
    async close() {
      for (const node of [...opened]) await node.close();
      await database.drop();
    },
  };
}
