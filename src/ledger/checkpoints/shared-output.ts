import type { Log } from "../../base/log.ts";
import type { Signal } from "../../base/signal.ts";
import type { BusMessage } from "../../nodes/bus.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import { type Sql, StoreUnavailable } from "../../store/db.ts";
import { type LedgerFaults, reportChanged } from "../faults.ts";
import type { LedgerKeys } from "../keys/keys.ts";
import type { LedgerGrowth } from "../ledger.ts";
import { LedgerChanged } from "../ledger-changed.ts";
import { parseSignedCheckpoint } from "../proof/checkpoint.ts";
import { isEqual } from "../proof/hash.ts";
import { NoteError, parseVerifierKey, signersOf } from "../proof/note.ts";
import type { Proofs } from "../reading/proofs.ts";
import { sha256 } from "../tree-hash.ts";
import { tools } from "../verify/tools.ts";
import type { CheckpointFile } from "./file.ts";
import type { CheckpointOutput } from "./output.ts";

export interface SharedOutputParts {
  readonly db: Pick<Sql, "all">;
  readonly keys: Pick<LedgerKeys, "verifierKeys">;
  readonly proofs: Pick<Proofs, "head">;
  readonly faults: Pick<LedgerFaults, "report">;
  readonly nodes: Pick<Nodes, "bus">;
  readonly grownElsewhere: Signal<LedgerGrowth>;
  readonly log: Pick<Log, "warn">;
  /** This node's file; null if it has none. */
  readonly file: CheckpointFile | null;
  nameOf(workspaceId: number): string;
}

interface StoredCheckpoint {
  readonly size: number;
  readonly note: string;
}

/** The topic of messages that tell of new checkpoints. */
const SIGNED = "checkpoints.signed";
const AT_ONCE = 256;
const LATER =
  "SELECT size, note FROM ledger_checkpoints WHERE workspace_id = $1 AND size > $2 ORDER BY size LIMIT $3";
/** Smaller than the checkpoint of an empty ledger. */
const NONE = -1;

/**
 * Appends the checkpoints that any node signs to this node's file, in the order of each ledger and each once, from those
 * on that were stored when this node started. Each is verified first, since the file has to be right even if the database
 * is not.
 */
export class SharedOutput implements CheckpointOutput {
  readonly #parts: SharedOutputParts;
  /** By workspace, the size of the last checkpoint in the file. */
  readonly #written = new Map<number, number>();
  readonly #following = new Map<number, Promise<void>>();
  readonly #end: readonly (() => void)[];

  /** @param last by workspace, the size of the last checkpoint that is not to be appended */
  constructor(parts: SharedOutputParts, last: ReadonlyMap<number, number>) {
    this.#parts = parts;
    for (const [workspaceId, size] of last) this.#written.set(workspaceId, size);
    const { file, nodes, grownElsewhere } = parts;
    this.#end =
      file === null
        ? []
        : [
            nodes.bus.listen(SIGNED, (message) => this.#receive(message)),
            // In case a message was missed: whoever signs, signs soon after a ledger has grown.
            grownElsewhere.listen(({ workspaceId }) => this.#follow(workspaceId)),
          ];
  }

  append(workspaceId: number): void {
    this.#parts.nodes.bus.send(SIGNED, { workspace: workspaceId });
    this.#follow(workspaceId);
  }

  async close(): Promise<void> {
    for (const end of this.#end) end();
    await Promise.all(this.#following.values());
    await this.#parts.file?.close();
  }

  #receive({ workspace }: BusMessage): void {
    if (typeof workspace === "number") this.#follow(workspace);
  }

  /** Appends what is new, after what is being appended. */
  #follow(workspaceId: number): void {
    if (!this.#parts.file) return;
    const before = this.#following.get(workspaceId) ?? Promise.resolve();
    const work = before
      .then(() => this.#appendNew(workspaceId))
      .then(() => {
        if (this.#following.get(workspaceId) === work) this.#following.delete(workspaceId);
      });
    this.#following.set(workspaceId, work);
  }

  /** Never rejects: the next checkpoint brings those that are missing along. */
  async #appendNew(workspaceId: number): Promise<void> {
    const { db, faults, file, log } = this.#parts;
    try {
      for (;;) {
        const last = this.#written.get(workspaceId) ?? NONE;
        const rows = await db.all<StoredCheckpoint>(LATER, [workspaceId, last, AT_ONCE]);
        for (const row of rows) {
          await this.#verify(workspaceId, row);
          this.#written.set(workspaceId, row.size);
          file?.append([row.note]);
        }
        if (rows.length < AT_ONCE) return;
      }
    } catch (error) {
      reportChanged(faults, workspaceId, error);
      if (error instanceof StoreUnavailable) return;
      log.warn("a checkpoint of another node is not appended to the file", { workspace: workspaceId, error });
    }
  }

  /** @throws LedgerChanged if it is not a checkpoint of this ledger, signed with its key */
  async #verify(workspaceId: number, { size, note }: StoredCheckpoint): Promise<void> {
    const { keys, nameOf, proofs } = this.#parts;
    // Before the keys are asked for, because it learns a key that another node has just put in force.
    const { root } = await proofs.head(workspaceId, size);
    const { current, former } = keys.verifierKeys(nameOf(workspaceId));
    const known = [current, ...former].map((key) => parseVerifierKey(sha256, key));
    try {
      const { checkpoint, note: signed } = parseSignedCheckpoint(note);
      const signers = await signersOf(signed, known, tools.verifySignature);
      const isOwn = known.some(({ name }) => name === checkpoint.origin) && checkpoint.size === size;
      if (signers.length > 0 && isOwn && isEqual(checkpoint.root, root)) return;
    } catch (error) {
      if (!(error instanceof NoteError)) throw error;
    }
    throw new LedgerChanged(`the stored checkpoint of ${size} entries is not one that was signed`, size);
  }
}
