import { type Clock, every } from "../../base/clock.ts";
import { OperatorError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { Signal } from "../../base/signal.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { Db, Sql, Tx } from "../../store/db.ts";
import { type LedgerFaults, reportChanged } from "../faults.ts";
import type { GrowthElsewhere } from "../growth-elsewhere.ts";
import type { LedgerHeads } from "../heads/heads.ts";
import type { Ledger, LedgerGrowth } from "../ledger.ts";
import { LedgerChanged } from "../ledger-changed.ts";
import { parseSignedCheckpoint } from "../proof/checkpoint.ts";
import { isEqual } from "../proof/hash.ts";
import { NoteError } from "../proof/note.ts";
import { lastCheckpointSize, type Proofs, type SignedHead } from "../reading/proofs.ts";
import { ledgerSize } from "../reading/query.ts";
import type { CheckpointOutput } from "./output.ts";

export interface CheckpointParts {
  readonly db: Db;
  readonly ledger: Pick<Ledger, "grown" | "append">;
  readonly heads: Pick<LedgerHeads, "addCheckpoint">;
  readonly proofs: Pick<Proofs, "head">;
  readonly faults: Pick<LedgerFaults, "report">;
  readonly clock: Clock;
  readonly log: Log;
  readonly output: CheckpointOutput;
  readonly nodes: Pick<Nodes, "isShared" | "leases" | "bus">;
  /** Which ledgers other nodes append to. */
  readonly elsewhere: Pick<GrowthElsewhere, "grown" | "look">;
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

/** How far a ledger has grown, and how much of it a checkpoint covers. */
interface Sizes {
  size: number;
  signed: number;
  /** The size at which the node that signs was told that a checkpoint is due. */
  told: number;
}

/** The lease of the node that signs. */
const LEASE = "checkpoints";
/** The topic of messages to that node: a ledger has grown so far that a checkpoint is due. */
const DUE = "checkpoints.due";

/**
 * Signs the head of each ledger's tree after a number of entries, and after a number of seconds if there are new
 * ones. Even if entries are appended in large groups, two consecutive checkpoints are never further apart than the
 * rule allows.
 *
 * One node at a time signs the ledgers that all nodes append to, by its own rule, which it records. Only the first
 * checkpoint of a ledger and those of a rotation are signed by whichever node appends the entries. A checkpoint is stored
 * if it is larger than all others when the ledger's tail is locked, so they are in order whoever signs.
 */
export class Checkpoints {
  /** Emits each checkpoint once it is stored; of several stored together, the last. Listeners MUST NOT throw. */
  readonly published = new Signal<{ readonly workspaceId: number; readonly head: SignedHead }>();
  readonly #parts: CheckpointParts;
  readonly #rule: CheckpointRule;
  readonly #sizes = new Map<number, Sizes>();
  readonly #signing = new Map<number, Promise<void>>();
  /** Whether this node signs. */
  #isSigner = false;
  #end = () => {};
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
      const size = await ledgerSize(db, id);
      this.#sizes.set(id, { size, signed: await lastCheckpointSize(db, id), told: 0 });
    }
    const ignoreOwn = ledger.grown.listen((grown) => this.#note(grown));
    const ignoreOthers = this.#parts.elsewhere.grown.listen((grown) => void this.#noteElsewhere(grown));
    this.#endListening = () => {
      ignoreOwn();
      ignoreOthers();
    };
  }

  /**
   * Records the rule if it differs from the one recorded last (initially the default). It tells anyone who verifies a
   * ledger how much may be unsigned. MUST run before `start`, which also signs that entry. If several nodes sign in turn,
   * each records its rule when it begins to sign.
   */
  async recordRule(): Promise<void> {
    if (this.#parts.nodes.isShared && !this.#isSigner) return;
    for (const id of this.#sizes.keys()) await this.#recordRuleOf(id);
  }

  async #recordRuleOf(workspaceId: number): Promise<void> {
    const { db, ledger } = this.#parts;
    const { every: entries, seconds } = this.#rule;
    const rule = `${entries}/${seconds}`;
    const key = `checkpoint_rule:${workspaceId}`;
    const isRecorded = async (sql: Pick<Sql, "get">) => {
      const known = await sql.get<{ value: string }>("SELECT value FROM meta WHERE key = $1", [key]);
      return (known?.value ?? DEFAULT_RULE) === rule;
    };
    if (await isRecorded(db)) return;
    await db.tx(workspaceId, async (tx) => {
      // Another node may have recorded it since.
      if (await isRecorded(tx)) return;
      await ledger.append(tx, workspaceId, {
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

  /** Signs everything that no checkpoint covers yet, and what becomes due, as long as no other node does. */
  start(): void {
    const { nodes } = this.#parts;
    const ignoreDue = nodes.bus.listen(DUE, () => this.#parts.elsewhere.look());
    const giveUp = nodes.leases.hold(LEASE, () => {
      this.#isSigner = true;
      void this.#begin();
      const endTimer = every(this.#parts.clock, this.#rule.seconds * 1000, () => this.#signAll());
      return () => {
        endTimer();
        this.#isSigner = false;
      };
    });
    this.#end = () => {
      ignoreDue();
      giveUp();
    };
  }

  /** Signs what is still unsigned. Resolves once that is stored and written to the file. */
  async stop(): Promise<void> {
    this.#endListening();
    this.#isSigner = true;
    this.#signAll();
    await Promise.all(this.#signing.values());
    this.#end();
    await this.#parts.output.close();
  }

  /** Never rejects: what is due is signed with the next timer. */
  async #begin(): Promise<void> {
    try {
      if (this.#parts.nodes.isShared) await this.recordRule();
    } catch (error) {
      this.#parts.log.warn("the rule of checkpoints could not be recorded", { error });
    }
    this.#signAll();
  }

  #signAll(): void {
    if (!this.#isSigner) return;
    for (const id of this.#sizes.keys()) this.#sign(id, true);
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
    this.#parts.output.append(
      workspaceId,
      stored.map(({ note }) => note),
    );
    this.published.emit({ workspaceId, head: last });
  }

  #note({ workspaceId, size }: LedgerGrowth): void {
    const known = this.#sizes.get(workspaceId);
    if (known) known.size = Math.max(known.size, size);
    else this.#sizes.set(workspaceId, { size, signed: NONE, told: 0 });
    // The first checkpoint is signed at once. From then on nobody can claim that there was no ledger.
    if (!known) this.#sign(workspaceId, true);
    else if (this.#isDue(workspaceId)) this.#signOrTell(workspaceId, known);
  }

  /** Signs what is due, or tells the node that signs. */
  #signOrTell(workspaceId: number, known: Sizes): void {
    if (this.#isSigner || !this.#parts.nodes.isShared) {
      this.#sign(workspaceId, false);
    } else if (known.size - known.told >= this.#rule.every) {
      known.told = known.size;
      this.#parts.nodes.bus.send(DUE, {});
    }
  }

  async #noteElsewhere(grown: LedgerGrowth): Promise<void> {
    const { workspaceId } = grown;
    try {
      // Another node has created the workspace, and signs its first checkpoint.
      if (!this.#sizes.has(workspaceId)) {
        const signed = await lastCheckpointSize(this.#parts.db, workspaceId);
        if (!this.#sizes.has(workspaceId)) this.#sizes.set(workspaceId, { size: 0, signed, told: 0 });
        if (this.#isSigner) await this.#recordRuleOf(workspaceId);
      }
      this.#note(grown);
    } catch (error) {
      this.#parts.log.warn("a ledger that another node has begun will be looked at later", { error });
    }
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
    const { db, nodes, proofs } = this.#parts;
    // Another node may have signed.
    if (nodes.isShared) known.signed = Math.max(known.signed, await lastCheckpointSize(db, workspaceId));
    for (let sizes = this.#due(known, all); sizes.length > 0; sizes = this.#due(known, all)) {
      const heads: SignedHead[] = [];
      for (const size of sizes) heads.push(await proofs.head(workspaceId, size));
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
