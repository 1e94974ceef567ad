import { countRead, readTurn } from "../../base/inflow.ts";
import { type Sql, type SqlValue, StoreUnavailable } from "../db.ts";
import { type Connection, sqliteCode } from "./connection.ts";

/** Codes that mean the file cannot be read now. A refused write (`READONLY`) would be a bug here. */
const UNREADABLE = /^SQLITE_(BUSY|LOCKED|IOERR|CORRUPT|NOTADB|CANTOPEN|NOMEM|PROTOCOL)/;
/** Reading and using a row takes as long as this many bytes of text: about 2 µs. */
const PER_ROW = 1024;
/** Shorter results do not count as part of a turn. */
const SHORT_BYTES = 4 * 1024;

/** Reads outside transactions. They wait while a commit is being synced (`GroupCommit.syncing`). */
export interface ReadSources {
  readonly reader: Connection;
  readonly commits: { readonly syncing: Promise<void> | null };
}

/**
 * Reading a text of megabytes takes milliseconds, and so does what follows, such as
 * parsing it. So reads take turns: once long rows have used up a turn of the event loop, further reads wait for a later
 * one, and workspaces take turns.
 */
export function readsInTurn(sources: ReadSources): Pick<Sql, "all" | "get"> {
  const { all, get } = urgentReads(sources);
  const { commits } = sources;
  return {
    async all<Row>(sql: string, params?: readonly SqlValue[]) {
      // Before its turn: those that have waited for a sync begin together.
      while (commits.syncing) await commits.syncing;
      const turn = readTurn(workspaceOf(params));
      if (turn) await turn;
      return all<Row>(sql, params);
    },
    async get<Row>(sql: string, params?: readonly SqlValue[]) {
      while (commits.syncing) await commits.syncing;
      const turn = readTurn(workspaceOf(params));
      if (turn) await turn;
      return get<Row>(sql, params);
    },
  };
}

/** Reads that wait for no turn, and count like all others. */
export function urgentReads({ reader, commits }: ReadSources): Pick<Sql, "all" | "get"> {
  return {
    async all<Row>(sql: string, params?: readonly SqlValue[]) {
      while (commits.syncing) await commits.syncing;
      const rows = read(() => reader.all<Row>(sql, params));
      count(rows);
      return rows;
    },
    async get<Row>(sql: string, params?: readonly SqlValue[]) {
      while (commits.syncing) await commits.syncing;
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
