import { countRead, readTurn } from "../../base/inflow.ts";
import { type Sql, type SqlValue, StoreUnavailable } from "../db.ts";
import { type Connection, sqliteCode } from "./connection.ts";
import type { SyncWait } from "./sync-wait.ts";

/** Codes that mean the file cannot be read now. A refused write (`READONLY`) would be a bug here. */
const UNREADABLE = /^SQLITE_(BUSY|LOCKED|IOERR|CORRUPT|NOTADB|CANTOPEN|NOMEM|PROTOCOL)/;
/** Reading and using a row takes as long as this many bytes of text: about 2 µs. */
const PER_ROW = 1024;
/** Shorter results do not count as part of a turn. */
const SHORT_BYTES = 4 * 1024;

/** Reads outside transactions. They wait while a commit is being synced. */
export interface ReadSources {
  readonly reader: Connection;
  readonly syncing: SyncWait;
}

/**
 * Reading a text of megabytes takes milliseconds, and so does what follows, such as parsing it. So reads take turns: once
 * long rows have used up a turn of the event loop, further reads wait for a later one, and workspaces take turns.
 */
export function readsInTurn(sources: ReadSources): Pick<Sql, "all" | "get"> {
  const { syncing } = sources;
  const untilSynced = async (): Promise<void> => {
    while (syncing.reads) await syncing.reads;
  };
  const takeTurn = (params: readonly SqlValue[] | undefined): Promise<void> | null =>
    readTurn(workspaceOf(params))?.then(untilSynced) ?? null;
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
      count(rows);
      return rows;
    },
    async get<Row>(sql: string, params?: readonly SqlValue[]) {
      const waiting = wait(params);
      if (waiting) await waiting;
      if (syncing.failure) throw syncing.failure;
      const row = read(() => reader.get<Row>(sql, params));
      count([row]);
      return row;
    },
  };
}

/** The workspace is the first parameter of its queries. Other queries share a place in the order of turns. */
function workspaceOf(params: readonly SqlValue[] | undefined): number {
  const first = params?.[0];
  return typeof first === "number" ? first : 0;
}

function count(rows: readonly unknown[]): void {
  let bytes = rows.length * PER_ROW;
  for (const row of rows) {
    for (const value of Object.values(row ?? {})) {
      if (typeof value === "string" || value instanceof Uint8Array) bytes += value.length;
    }
  }
  if (bytes >= SHORT_BYTES) countRead(bytes);
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
