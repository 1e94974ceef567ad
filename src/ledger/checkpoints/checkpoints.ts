import { type Clock, every } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { Signal } from "../../base/signal.ts";
import type { Db, Tx } from "../../store/db.ts";
import { type LedgerFaults, reportChanged } from "../faults.ts";
import type { LedgerHeads } from "../heads/heads.ts";
import type { Ledger, LedgerGrowth } from "../ledger.ts";
import { LedgerChanged } from "../ledger-changed.ts";
import { parseSignedCheckpoint } from "../proof/checkpoint.ts";
import { isEqual } from "../proof/hash.ts";
import { NoteError } from "../proof/note.ts";
import { lastCheckpointSize, type Proofs, type SignedHead } from "../reading/proofs.ts";
import { ledgerSize } from "../reading/query.ts";
import type { CheckpointFile } from "./file.ts";

export interface CheckpointParts {
  readonly db: Db;
  readonly ledger: Pick<Ledger, "grown" | "append">;
  readonly heads: Pick<LedgerHeads, "addCheckpoint">;
  readonly proofs: Pick<Proofs, "head">;
  readonly faults: Pick<LedgerFaults, "report">;
  readonly clock: Clock;
  readonly log: Log;
  /** Null if checkpoints are kept only in the database. */
  readonly file: CheckpointFile | null;
}

export interface CheckpointRule {
  /** Number of entries after which a checkpoint is signed. */
  readonly every: number;
  /** Seconds after which new entries are signed, however few there are. */
  readonly seconds: number;
}

/** The rule in force if none is recorded: the default of the settings. */
const DEFAULT_RULE = "256/10";

/** Less than the size of any tree, because even the empty tree has to be signed. */
const NONE = -1;

/**
 * Maximum number of checkpoints stored by one transaction. More are due if entries are appended faster than they are
 * signed.
 */
const AT_ONCE = 64;

/**
 * Signs the head of each ledger's tree after a number of entries, and after a number of seconds if there are new
 * ones. Even if entries are appended in large groups, two consecutive checkpoints are never further apart than the
 * rule allows.
 */
export class Checkpoints {
  /** Emits each checkpoint once it is stored; of several stored together, the last. Listeners MUST NOT throw. */
  readonly published = new Signal<{ readonly workspaceId: number; readonly head: SignedHead }>();
  readonly #parts: CheckpointParts;
  readonly #rule: CheckpointRule;
  readonly #sizes = new Map<number, { size: number; signed: number }>();
  readonly #signing = new Map<number, Promise<void>>();
  #endTimer = () => {};
  #endListening = () => {};

  constructor(parts: CheckpointParts, rule: CheckpointRule) {
    this.#parts = parts;
    this.#rule = rule;
  }

  /** Determines what is not signed yet. MUST run before anything is appended. */
  async open(workspaceIds: readonly number[]): Promise<void> {
    const { db, ledger } = this.#parts;
    for (const id of workspaceIds) {
      await this.#check(id);
      this.#sizes.set(id, { size: await ledgerSize(db, id), signed: await lastCheckpointSize(db, id) });
    }
    this.#endListening = ledger.grown.listen((grown) => this.#note(grown));
  }

  /**
   * Records the rule if it differs from the one recorded last (initially the default). It tells anyone who verifies a
   * ledger how much may be unsigned. MUST run before `start`, which also signs that entry.
   */
  async recordRule(): Promise<void> {
    const { db, ledger } = this.#parts;
    const { every: entries, seconds } = this.#rule;
    const rule = `${entries}/${seconds}`;
    for (const id of this.#sizes.keys()) {
      const key = `checkpoint_rule:${id}`;
      const known = await db.get<{ value: string }>("SELECT value FROM meta WHERE key = $1", [key]);
      if ((known?.value ?? DEFAULT_RULE) === rule) continue;
      await db.tx(id, async (tx) => {
        await ledger.append(tx, id, {
          phase: "single",
          action: "config.change",
          outcome: "succeeded",
          channel: "system",
          actor: "system",
          detail: { checkpoint_every: entries, checkpoint_seconds: seconds },
        });
        tx.write(
          "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
          [key, rule],
        );
      });
    }
  }

  /** Signs everything that no checkpoint covers yet, and starts the timer. */
  start(): void {
    for (const id of this.#sizes.keys()) this.#sign(id, true);
    this.#endTimer = every(this.#parts.clock, this.#rule.seconds * 1000, () => {
      for (const id of this.#sizes.keys()) this.#sign(id, true);
    });
  }

  /** Signs what is still unsigned. Resolves once that is stored and written to the file. */
  async stop(): Promise<void> {
    this.#endTimer();
    this.#endListening();
    for (const id of this.#sizes.keys()) this.#sign(id, true);
    await Promise.all(this.#signing.values());
    await this.#parts.file?.close();
  }

  /**
   * Before signing anything, checks that the last checkpoint is still valid. Otherwise the key would certify a change
   * to the file as genuine, and there would be two signed histories.
   * @throws OperatorError
   */
  async #check(workspaceId: number): Promise<void> {
    const { db } = this.#parts;
    const row = await db.get<{ size: number; note: string }>(
      "SELECT size, note FROM ledger_checkpoints WHERE workspace_id = $1 ORDER BY size DESC LIMIT 1",
      [workspaceId],
    );
    if (!row) return;
    const size = await ledgerSize(db, workspaceId);
    if (row.size <= size && (await this.#hasRoot(workspaceId, row.size, row.note))) return;
    throw new OperatorError(
      `the ledger of workspace ${workspaceId} was changed: its first ${row.size} entries are not those that were signed`,
      "keep this data directory as it is, and run: gatehouse ledger verify --data DIR",
    );
  }

  async #hasRoot(workspaceId: number, size: number, note: string): Promise<boolean> {
    try {
      const { checkpoint } = parseSignedCheckpoint(note);
      return isEqual(checkpoint.root, (await this.#parts.proofs.head(workspaceId, size)).root);
    } catch (error) {
      if (error instanceof LedgerChanged || error instanceof NoteError) return false;
      throw error;
    }
  }

  /** Publishes a checkpoint that another component has stored. */
  announce(workspaceId: number, head: SignedHead): void {
    const known = this.#sizes.get(workspaceId);
    if (known) known.signed = Math.max(known.signed, head.size);
    this.#publish(workspaceId, [head], head);
  }

  #publish(workspaceId: number, stored: readonly SignedHead[], last: SignedHead): void {
    this.#parts.file?.append(stored.map(({ note }) => note));
    this.published.emit({ workspaceId, head: last });
  }

  #note({ workspaceId, size }: LedgerGrowth): void {
    const known = this.#sizes.get(workspaceId);
    if (known) known.size = size;
    else this.#sizes.set(workspaceId, { size, signed: NONE });
    // The first checkpoint is signed at once. From then on nobody can claim that there was no ledger.
    if (!known || this.#isDue(workspaceId)) this.#sign(workspaceId, !known);
  }

  /** Signs one at a time for each workspace. Entries appended in the meantime are considered afterwards. */
  #sign(workspaceId: number, all: boolean): void {
    const before = this.#signing.get(workspaceId);
    if (before && !all) return;
    const work = (before ?? Promise.resolve())
      .then(() => this.#trySign(workspaceId, all))
      .then((isSigned) => {
        if (this.#signing.get(workspaceId) !== work) return;
        this.#signing.delete(workspaceId);
        if (isSigned && this.#isDue(workspaceId)) this.#sign(workspaceId, false);
      });
    this.#signing.set(workspaceId, work);
  }

  async #trySign(workspaceId: number, all: boolean): Promise<boolean> {
    try {
      await this.#signDue(workspaceId, all);
      return true;
    } catch (error) {
      reportChanged(this.#parts.faults, workspaceId, error);
      this.#parts.log.warn("a checkpoint could not be signed; it will be tried again", { error });
      return false;
    }
  }

  #isDue(workspaceId: number): boolean {
    const known = this.#sizes.get(workspaceId);
    return known !== undefined && known.size - Math.max(known.signed, 0) >= this.#rule.every;
  }

  async #signDue(workspaceId: number, all: boolean): Promise<void> {
    const known = this.#sizes.get(workspaceId);
    if (!known) return;
    for (let sizes = this.#due(known, all); sizes.length > 0; sizes = this.#due(known, all)) {
      const heads: SignedHead[] = [];
      for (const size of sizes) heads.push(await this.#parts.proofs.head(workspaceId, size));
      const stored = await this.#store(workspaceId, heads);
      known.signed = Math.max(known.signed, sizes.at(-1) ?? 0);
      const last = stored.at(-1);
      if (last) this.#publish(workspaceId, stored, last);
    }
  }

  #due({ size, signed }: { readonly size: number; readonly signed: number }, all: boolean): number[] {
    const { every: step } = this.#rule;
    const sizes: number[] = [];
    for (let next = Math.max(signed, 0) + step; next <= size && sizes.length < AT_ONCE; next += step)
      sizes.push(next);
    if (all && sizes.length < AT_ONCE && (sizes.at(-1) ?? signed) < size) sizes.push(size);
    return sizes;
  }

  /** Returns the checkpoints that were stored. A key rotation may have signed a later one in the meantime. */
  async #store(workspaceId: number, heads: readonly SignedHead[]): Promise<readonly SignedHead[]> {
    const { db, heads: series, clock } = this.#parts;
    return db.tx(workspaceId, async (tx) => {
      const last = await lastCheckpointSize(tx, workspaceId);
      const later = heads.filter(({ size }) => size > last);
      for (const { size, note } of later) {
        storeCheckpoint(tx, series, { workspaceId, size, note, now: clock.now() });
      }
      return later;
    });
  }
}

/** Stores a checkpoint and adds it to the series that the ledger's head covers. */
export function storeCheckpoint(
  tx: Tx,
  heads: Pick<LedgerHeads, "addCheckpoint">,
  {
    workspaceId,
    size,
    note,
    now,
  }: {
    readonly workspaceId: number;
    readonly size: number;
    readonly note: string;
    /** Milliseconds since the Unix epoch. */
    readonly now: number;
  },
): void {
  heads.addCheckpoint(tx, workspaceId, note);
  tx.write("INSERT INTO ledger_checkpoints (workspace_id, size, note, created_at) VALUES ($1, $2, $3, $4)", [
    workspaceId,
    size,
    note,
    now,
  ]);
}
