import { type Clock, every } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Db, type Disturbance, StoreUnavailable } from "../store/db.ts";
import type { Draft } from "./entry.ts";
import type { Ledger } from "./ledger.ts";

const LOOK_MS = 1_000;
/** Ledgers that are told in one transaction: some 2 ms. */
const LEDGERS_AT_ONCE = 64;
/** Events that may wait for a store that cannot be written. What is seen past that is in the log and the metrics alone. */
const PENDING_LIMIT = 1_000;

export interface LedgerWatchParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly log: Log;
  /** Each of them is told. */
  workspaceIds(): readonly number[];
  /** Told of each event once, for the metrics. */
  noticed(kind: Disturbance["kind"]): void;
}

/** An event, and the ledgers that do not hold it yet. */
interface Pending {
  readonly disturbance: Disturbance;
  readonly noticedAt: number;
  left: readonly number[];
}

/**
 * Sees what others do to the store while this process has it, and records it in the ledger of every workspace: that
 * somebody else has written to it (`ledger.foreign_write`), and that its file was moved, replaced or deleted
 * (`ledger.file_moved`). Looks once a second; each event is recorded once.
 */
export class LedgerWatch {
  readonly #parts: LedgerWatchParts;
  #pending: Pending[] = [];
  #looking: Promise<void> | null = null;
  #end = () => {};

  constructor(parts: LedgerWatchParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#end = every(this.#parts.clock, LOOK_MS, () => void this.look());
  }

  /** Looks a last time. What cannot be written then is in the log alone. */
  async stop(): Promise<void> {
    this.#end();
    await this.#looking;
    await this.look();
  }

  /** Looks now, unless somebody does. Never throws. */
  async look(): Promise<void> {
    this.#looking ??= this.#lookAndRecord().finally(() => {
      this.#looking = null;
    });
    await this.#looking;
  }

  async #lookAndRecord(): Promise<void> {
    const { db, log } = this.#parts;
    let found: readonly Disturbance[] = [];
    try {
      found = await db.disturbances();
      for (const disturbance of found) this.#notice(disturbance);
      await this.#record();
    } catch (error) {
      if (!(error instanceof StoreUnavailable))
        log.error("what happened to the store is not recorded", { error });
      else if (found.length > 0)
        log.warn("what happened to the store will be recorded once it can be", { error });
    }
    if (!found.some(({ kind }) => kind === "file_moved")) return;
    try {
      // A file that was moved without its log would hold none of what was written last.
      await db.forget();
    } catch (error) {
      log.warn("the log cannot be written back into the file that was moved", { error });
    }
  }

  #notice(disturbance: Disturbance): void {
    const { clock, log, noticed, workspaceIds } = this.#parts;
    const { kind, ...rest } = disturbance;
    noticed(kind);
    if (disturbance.kind === "foreign_write") {
      log.error("another program or connection has written to the database", rest);
    } else if (disturbance.change === "returned") {
      log.warn("a file of the store is in its place again; calls are taken", rest);
    } else {
      log.error("a file of the store is not in its place; calls are refused until it is", rest);
    }
    if (this.#pending.length >= PENDING_LIMIT) return;
    this.#pending.push({ disturbance, noticedAt: clock.now(), left: workspaceIds() });
  }

  async #record(): Promise<void> {
    const { db, ledger } = this.#parts;
    for (let next = this.#pending[0]; next; next = this.#pending[0]) {
      const { left } = next;
      const draft = draftOf(next, this.#parts.clock.now());
      const told = left.slice(0, LEDGERS_AT_ONCE);
      await db.tx(
        async (tx) => {
          for (const workspaceId of told) await ledger.append(tx, workspaceId, draft);
        },
        { displaced: true },
      );
      next.left = left.slice(told.length);
      if (next.left.length === 0) this.#pending.shift();
    }
  }
}

function draftOf({ disturbance, noticedAt }: Pending, now: number): Draft {
  const { kind, ...what } = disturbance;
  const isOver = disturbance.kind === "file_moved" && disturbance.change === "returned";
  const late = now - noticedAt;
  return {
    phase: "single",
    action: `ledger.${kind}`,
    outcome: isOver ? "succeeded" : "failed",
    channel: "system",
    actor: "system",
    detail: { ...what, ...(late > 0 ? { late_ms: late } : {}) },
  };
}
