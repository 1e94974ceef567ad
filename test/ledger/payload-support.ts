/** An auditor's view of a store's payloads: each text exists, or an entry says that it was erased. */
import { silentLog } from "../../src/base/log.ts";
import { LedgerHistories } from "../../src/gate/ledger-histories.ts";
import { readExpiry } from "../../src/ledger/expiry.ts";
import { NAMED_AT_ONCE, namesOf, parseErasure } from "../../src/ledger/proof/erasure.ts";
import { localNodes } from "../../src/nodes/local-nodes.ts";
import { type Db, type Sql, StoreUnavailable } from "../../src/store/db.ts";
import { Forgetting } from "../../src/store/forgetting.ts";
import { PayloadExpiry } from "../../src/tasks/erasure/payload-expiry.ts";
import { EventHub } from "../../src/tasks/events/hub.ts";
import { TaskSignals } from "../../src/tasks/signals.ts";
import type { LedgerBench } from "./support.ts";

interface Entry {
  readonly seq: number;
  readonly action: string;
  readonly input_hash?: string;
  readonly output_hash?: string;
}

/**
 * One sentence for each text that is missing without explanation, exists although it was erased, or was erased twice.
 */
export async function accounts(db: Pick<Sql, "all" | "get" | "seals">): Promise<string[]> {
  const faults: string[] = [];
  for (const { id } of await db.all<{ id: number }>("SELECT id FROM workspaces")) {
    const rows = await db.all<{ bytes: string }>(
      "SELECT bytes FROM ledger WHERE workspace_id = $1 ORDER BY seq",
      [id],
    );
    const entries = rows.map(({ bytes }) => JSON.parse(bytes) as Entry);
    const payloads = await db.all<{ name: string }>(
      "SELECT seq || '.' || kind AS name FROM payloads WHERE workspace_id = $1",
      [id],
    );
    const there = new Set(payloads.map(({ name }) => name));
    const named = new Set<string>();
    let upTo = (await readExpiry(db, id)).run?.upTo ?? 0;
    let recorded = 0;
    for (const entry of entries) {
      const erasure = parseErasure(entry);
      if (erasure && "upTo" in erasure) recorded = Math.max(recorded, erasure.upTo);
      else if (erasure) {
        if (erasure.payloads.length > NAMED_AT_ONCE) faults.push(`${id}/${entry.seq} names too many`);
        for (const payload of erasure.payloads) {
          const name = namesOf([payload]);
          if (named.has(name)) faults.push(`${id}/${name} was erased twice`);
          named.add(name);
        }
      } else if (entry.action.startsWith("payload.")) faults.push(`${id}/${entry.seq} says nothing`);
    }
    upTo = Math.max(upTo, recorded);
    const ever = new Set<string>();
    for (const entry of entries) {
      for (const kind of ["input", "output"] as const) {
        if (entry[`${kind}_hash`] === undefined) continue;
        const name = `${entry.seq}.${kind}`;
        ever.add(name);
        if (there.has(name) && named.has(name)) faults.push(`${id}/${name} is there although it was erased`);
        if (there.has(name) && entry.seq <= recorded) faults.push(`${id}/${name} has not expired`);
        if (!there.has(name) && !named.has(name) && entry.seq > upTo) faults.push(`${id}/${name} is missing`);
      }
    }
    for (const name of [...there, ...named]) if (!ever.has(name)) faults.push(`${id}/${name} never was`);
  }
  return faults;
}

export interface ExpiryOptions {
  /** How many transactions reach the store before the process seems to die. Null, the default, means all. */
  readonly transactions?: number | null;
  readonly days?: number;
  /** Called after each transaction. */
  readonly after?: () => void;
  /** Collects the kinds of changes that were found. */
  readonly told?: string[];
}

/** Expiry of two workspaces' payloads, by default after one day, on a separate store. */
export function expiryOf(
  { db, clock, ledger, lists, heads }: Pick<LedgerBench, "db" | "clock" | "ledger" | "lists" | "heads">,
  { transactions = null, days = 1, after = () => {}, told = [] }: ExpiryOptions = {},
): PayloadExpiry {
  let left = transactions ?? Number.POSITIVE_INFINITY;
  const dying: Db = {
    ...db,
    async tx(ledgers, work, options) {
      if (left === 0) throw new StoreUnavailable("the process has died");
      left -= 1;
      const value = await db.tx(ledgers, work, options);
      after();
      return value;
    },
  };
  return new PayloadExpiry({
    db: dying,
    ledger,
    lists,
    faults: { report: (_, { kind }) => void told.push(kind) },
    histories: new LedgerHistories({ db, heads, ledger, log: silentLog, acceptChanged: false }),
    signals: new TaskSignals(),
    leases: localNodes("node_1", clock).leases,
    hub: new EventHub(db),
    forgetting: new Forgetting({ files: db, clock, log: silentLog }),
    clock,
    log: silentLog,
    workspaces: { list: () => [{ id: 1 }, { id: 2 }] },
    days,
  });
}
