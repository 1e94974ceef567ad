import type { CommitWork, LedgerTail, SqlValue, Tx } from "../db.ts";
import { callHooks } from "../hooks.ts";
import type { RowSeals } from "../seals/seals.ts";
import { refusalOf } from "./errors.ts";
import type { Session } from "./session.ts";

/** The works that the transactions of one commit share, by their class. */
export type CommitWorks = Map<new () => CommitWork, CommitWork>;

export interface OpenTxParts {
  readonly seals: RowSeals;
  readonly ledgers: readonly number[];
  readonly lockedTails: ReadonlyMap<number, LedgerTail>;
  /** Null for what is written before the commit: nothing is written after it. */
  readonly shared: CommitWorks | null;
}

/** The transaction that a work sees. */
export class OpenTx implements Tx {
  readonly seals: RowSeals;
  #session: Session | null;
  readonly #shared: CommitWorks | null;
  /** A copy for each run of the work, which may add the ledger of a workspace that it creates. */
  readonly ledgers: number[];
  readonly lockedTails: ReadonlyMap<number, LedgerTail>;
  #undo: (() => void)[] | null = null;
  #done: (() => void)[] | null = null;

  constructor(session: Session, { seals, ledgers, lockedTails, shared }: OpenTxParts) {
    this.#session = session;
    this.ledgers = [...ledgers];
    this.lockedTails = lockedTails;
    this.seals = seals;
    this.#shared = shared;
  }

  async all<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row[]> {
    try {
      // The caller names the row's shape: see `Sql.all`.
      return (await this.#open().send(sql, params)).rows as readonly unknown[] as Row[];
    } catch (error) {
      throw refusalOf(error);
    }
  }

  async get<Row>(sql: string, params?: readonly SqlValue[]): Promise<Row | undefined> {
    return (await this.all<Row>(sql, params))[0];
  }

  async run(sql: string, params?: readonly SqlValue[]): Promise<number> {
    try {
      return (await this.#open().send(sql, params)).count;
    } catch (error) {
      throw refusalOf(error);
    }
  }

  write(sql: string, params?: readonly SqlValue[]): void {
    this.#open().write(sql, params);
  }

  onRollback(undo: () => void): void {
    this.#undo ??= [];
    this.#undo.push(undo);
  }

  onCommit(done: () => void): void {
    this.#done ??= [];
    this.#done.push(done);
  }

  shared<Work extends CommitWork>(kind: new () => Work): Work {
    if (!this.#shared) throw new Error("the other transactions of this commit have ended");
    const known = this.#shared.get(kind);
    if (known) return known as Work;
    const work = new kind();
    this.#shared.set(kind, work);
    return work;
  }

  rolledBack(): void {
    callHooks(this.#undo?.reverse() ?? []);
  }

  committed(): void {
    callHooks(this.#done ?? []);
  }

  /** A transaction kept beyond its end MUST NOT write into another one. */
  end(): void {
    this.#session = null;
  }

  #open(): Session {
    if (!this.#session) throw new Error("the transaction has ended");
    return this.#session;
  }
}
