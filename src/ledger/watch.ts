import { type Clock, every } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { type Db, StoreUnavailable } from "../store/db.ts";
import type { Disturbance, FileStore, ReopenReason } from "../store/file-store.ts";
import type { EntryDraft } from "./entry.ts";
import type { LedgerHeads } from "./heads/heads.ts";
import type { Ledger } from "./ledger.ts";
import { ledgerSize } from "./reading/query.ts";

const LOOK_MS = 1_000;
/** Ledgers that record an event at once and share a commit: about 2 ms. */
const LEDGERS_AT_ONCE = 64;
/**
 * Maximum number of events queued while the store cannot be written. Further ones appear only in the log and the
 * metrics.
 */
const PENDING_LIMIT = 1_000;

export interface LedgerWatchParts {
  readonly db: Db;
  readonly files: FileStore;
  readonly ledger: Ledger;
  readonly heads: Pick<LedgerHeads, "committed">;
  readonly clock: Clock;
  readonly log: Log;
  /** Each of these workspaces records the event. */
  workspaceIds(): readonly number[];
  /** Called once for each event, for the metrics. */
  noticed(kind: Disturbance["kind"] | "foreign_entry"): void;
  /**
   * Called at each check while the store must be opened again (`FileStore.mustReopen`). The ledgers that accept entries have recorded
   * a foreign write by then.
   */
  mustReopen(reason: ReopenReason): void;
}

/** An event, and the ledgers that have not recorded it yet. */
interface PendingDisturbance {
  readonly disturbance: Disturbance;
  readonly noticedAt: number;
  left: readonly number[];
}

/**
 * Detects what other programs do to the store while this process has it open, and records it in the ledger of every
 * workspace: writes (`ledger.foreign_write`), and files moved, replaced or deleted (`ledger.file_moved`). Checks once
 * a second; each event is recorded once. The store itself refuses all other writes from the first transaction on.
 *
 * If another program appends an entry to a ledger, nothing is ever appended after it, since the ledger's head would
 * then sign that entry. The ledger refuses all calls until it is repaired. This is reported in the log, in the
 * metrics and in `continued`.
 */
export class LedgerWatch {
  readonly #parts: LedgerWatchParts;
  #pending: PendingDisturbance[] = [];
  readonly #continued = new Set<number>();
  #looking: Promise<void> | null = null;
  #end = () => {};

  constructor(parts: LedgerWatchParts) {
    this.#parts = parts;
  }

  /** Workspaces whose ledger another program has appended to. Nothing can be recorded in them. */
  get continued(): ReadonlySet<number> {
    return this.#continued;
  }

  start(): void {
    this.#end = every(this.#parts.clock, LOOK_MS, () => void this.look());
  }

  /** Checks one last time. Anything that cannot be written then appears only in the log. */
  async stop(): Promise<void> {
    this.#end();
    await this.#looking;
    await this.look();
  }

  /** Checks now, or waits for a check in progress. Never throws. */
  async look(): Promise<void> {
    this.#looking ??= this.#lookAndRecord().finally(() => {
      this.#looking = null;
    });
    await this.#looking;
  }

  async #lookAndRecord(): Promise<void> {
    const { files, log } = this.#parts;
    let found: readonly Disturbance[] = [];
    try {
      found = await files.disturbances();
      for (const disturbance of found) this.#notice(disturbance);
      if (found.some(({ kind }) => kind === "foreign_write")) {
        await this.#lookAtTails();
      }
      await this.#record();
    } catch (error) {
      if (!(error instanceof StoreUnavailable))
        log.error("a change to the store could not be recorded", { error });
      else if (found.length > 0)
        log.warn("a change to the store will be recorded as soon as the store can be written", { error });
    }
    if (files.mustReopen) this.#parts.mustReopen(files.mustReopen);
    // If only the index was moved, another program may use the log with its own index.
    if (!found.some((each) => each.kind === "file_moved" && each.file !== "index")) return;
    try {
      // Without this, a file moved without its write-ahead log would lack the latest writes.
      await files.forget();
    } catch (error) {
      log.warn("the write-ahead log cannot be written back into the moved file", { error });
    }
  }

  #notice(disturbance: Disturbance): void {
    const { clock, files, log, noticed, workspaceIds } = this.#parts;
    const { kind, ...rest } = disturbance;
    noticed(kind);
    if (disturbance.kind === "foreign_write") {
      log.error(
        "another program has written to the database; calls are refused until the next start, which checks the stored data",
        rest,
      );
    } else if (files.mustReopen === "foreign_write") {
      log.error(
        "a file of the store is or was not in its place, and another program may have written to the database; calls are refused until the next start, which checks the stored data",
        rest,
      );
    } else if (disturbance.change === "returned") {
      log.warn("a file of the store is back in its place", rest);
    } else {
      log.error("a file of the store is not in its place; calls are refused until it is", rest);
    }
    if (this.#pending.length >= PENDING_LIMIT) return;
    this.#pending.push({ disturbance, noticedAt: clock.now(), left: workspaceIds() });
  }

  async #lookAtTails(): Promise<void> {
    const { db, heads, log, noticed, workspaceIds } = this.#parts;
    for (const workspace of workspaceIds()) {
      const stored = await ledgerSize(db, workspace);
      const { size } = await heads.committed(workspace);
      if (stored <= size) {
        this.#continued.delete(workspace);
      } else if (!this.#continued.has(workspace)) {
        this.#continued.add(workspace);
        noticed("foreign_entry");
        log.error(
          "another program has appended entries to a ledger that its key has not signed: nothing more can be recorded in it. Keep a copy of the data directory, run `gatehouse ledger verify`, and restore a backup",
          { workspace, signed: size, stored },
        );
      }
    }
  }

  /** @throws StoreUnavailable if no ledger accepts an entry */
  async #record(): Promise<void> {
    const refused = new Set<number>();
    for (const pending of [...this.#pending]) {
      const draft = draftOf(pending, this.#parts.clock.now());
      // Ledgers that refused an earlier event are skipped, so each ledger records its events in order.
      const asked = pending.left.filter((workspaceId) => !refused.has(workspaceId));
      for (let at = 0; at < asked.length; at += LEDGERS_AT_ONCE) {
        const failed = await this.#tell(asked.slice(at, at + LEDGERS_AT_ONCE), draft);
        for (const workspaceId of failed) refused.add(workspaceId);
      }
      pending.left = pending.left.filter((workspaceId) => refused.has(workspaceId));
      if (this.#isUnavailable(refused)) throw new StoreUnavailable("no ledger accepts an entry");
    }
    this.#pending = this.#pending.filter(({ left }) => left.length > 0);
  }

  #isUnavailable(refused: ReadonlySet<number>): boolean {
    return this.#parts.workspaceIds().every((workspaceId) => refused.has(workspaceId));
  }

  /** @returns the ledgers that refused it */
  async #tell(workspaceIds: readonly number[], draft: EntryDraft): Promise<readonly number[]> {
    const { db, ledger } = this.#parts;
    const results = await Promise.allSettled(
      workspaceIds.map((workspaceId) =>
        db.tx(workspaceId, (tx) => ledger.append(tx, workspaceId, draft), { whileRefused: true }),
      ),
    );
    return workspaceIds.filter((_, index) => {
      const result = results[index];
      if (result?.status !== "rejected") return false;
      if (!(result.reason instanceof StoreUnavailable)) throw result.reason;
      return true;
    });
  }
}

function draftOf({ disturbance, noticedAt }: PendingDisturbance, now: number): EntryDraft {
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
