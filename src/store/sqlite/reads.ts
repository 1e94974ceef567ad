import { type Sql, type SqlValue, StoreUnavailable } from "../db.ts";
import { countRows, turnOfRead } from "../reads.ts";
import { type Connection, sqliteCode } from "./connection.ts";
import type { SyncWait } from "./sync-wait.ts";

/** Codes that mean the file cannot be read now. A refused write (`READONLY`) would be a bug here. */
const UNREADABLE = /^SQLITE_(BUSY|LOCKED|IOERR|CORRUPT|NOTADB|CANTOPEN|NOMEM|PROTOCOL)/;

/** Reads outside transactions. They wait while a commit is being synced. */
export interface ReadSources {
  readonly reader: Connection;
  readonly syncing: SyncWait;
}

/** Reads that take turns: see `turnOfRead`. */
export function readsInTurn(sources: ReadSources): Pick<Sql, "all" | "get"> {
  const { syncing } = sources;
  const untilSynced = async (): Promise<void> => {
    while (syncing.reads) await syncing.reads;
  };
  const takeTurn = (params: readonly SqlValue[] | undefined): Promise<void> | null =>
    turnOfRead(params)?.then(untilSynced) ?? null;
  return readsAfter(sources, (params) =>
    // In this order, because reads that have waited for a sync go on together.
    syncing.reads ? untilSynced().then(() => takeTurn(params) ?? undefined) : takeTurn(params),
  );
}

/** Reads that wait for no turn, and count like all others. */
export function urgentReads(sources: ReadSources): Pick<Sql, "all" | "get"> {
  const { syncing } = sources;
  return readsAfter(sources, () => syncing.urgentReads);
}

function readsAfter(
  { reader, syncing }: ReadSources,
  wait: (params: readonly SqlValue[] | undefined) => Promise<void> | null,
): Pick<Sql, "all" | "get"> {
  return {
    async all<Row>(sql: string, params?: readonly SqlValue[]) {
      const waiting = wait(params);
      if (waiting) await waiting;
      if (syncing.failure) throw syncing.failure;
      const rows = read(() => reader.all<Row>(sql, params));
      countRows(rows);
      return rows;
    },
    async get<Row>(sql: string, params?: readonly SqlValue[]) {
      const waiting = wait(params);
      if (waiting) await waiting;
      if (syncing.failure) throw syncing.failure;
      const row = read(() => reader.get<Row>(sql, params));
      countRows([row]);
      return row;
    },
  };
}

/** @throws StoreUnavailable if the engine cannot read, as the writer does if it cannot write */
function read<Result>(query: () => Result): Result {
  try {
    return query();
  } catch (error) {
    const code = sqliteCode(error);
    if (UNREADABLE.test(code)) throw new StoreUnavailable(`the store cannot be read (${code})`, error);
    throw error;
  }
}
