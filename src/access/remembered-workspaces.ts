import type { Tx } from "../store/db.ts";
import { type WorkspaceRow, workspaceFrom } from "./workspace-rows.ts";
import type { Workspace, WorkspaceLimits } from "./workspaces.ts";

/** When a read of the store began. */
export interface ReadStart {
  readonly changes: number;
  readonly round: number;
}

interface Remembered {
  readonly workspace: Workspace;
  readonly row: WorkspaceRow;
}

/**
 * All workspaces, as this process has read or written them. In a store that nodes share, what is read again does not
 * replace what this process has written since the read began.
 */
export class RememberedWorkspaces {
  readonly #defaults: WorkspaceLimits;
  readonly #isShared: boolean;
  readonly #byId = new Map<number, Remembered>();
  /** Writes that are not committed, by workspace. */
  readonly #writing = new Map<number, number>();
  /** The number of this process's last change of a workspace. */
  readonly #changedAt = new Map<number, number>();
  #changes = 0;
  /** The round in which a workspace was last read. */
  readonly #readIn = new Map<number, number>();
  #round = 0;

  constructor(defaults: WorkspaceLimits, isShared: boolean) {
    this.#defaults = defaults;
    this.#isShared = isShared;
  }

  get(id: number): Remembered | undefined {
    return this.#byId.get(id);
  }

  values(): Iterable<Remembered> {
    return this.#byId.values();
  }

  /** Whether a workspace has been read since the last call of `outdate`. */
  isUpToDate(id: number): boolean {
    return this.#readIn.get(id) === this.#round;
  }

  /** Begins another round, in which every workspace is to be read again. */
  outdate(): void {
    this.#round += 1;
  }

  /** MUST be called before a read begins whose result is passed to `refresh`. */
  beginRead(): ReadStart {
    return { changes: this.#changes, round: this.#round };
  }

  /** Takes over what was read. @returns false if this process has changed the workspace since the read began */
  refresh(row: WorkspaceRow, { changes, round }: ReadStart): boolean {
    const { id } = row;
    if (this.#writing.has(id) || (this.#changedAt.get(id) ?? 0) > changes) return false;
    this.#set(row);
    this.#readIn.set(id, round);
    return true;
  }

  /** Takes over what a transaction has written, and undoes that if it is rolled back. */
  write(tx: Tx, row: WorkspaceRow): Workspace {
    const { id } = row;
    const before = this.#byId.get(id);
    tx.onRollback(() => {
      if (before) this.#byId.set(id, before);
      else this.#byId.delete(id);
    });
    if (this.#isShared) this.#follow(tx, row);
    return this.#set(row);
  }

  /** Until the end of the transaction, nothing that is read replaces what it has written. */
  #follow(tx: Tx, row: WorkspaceRow): void {
    const { id } = row;
    this.#writing.set(id, (this.#writing.get(id) ?? 0) + 1);
    const end = (): void => {
      const left = (this.#writing.get(id) ?? 0) - 1;
      if (left > 0) this.#writing.set(id, left);
      else this.#writing.delete(id);
      this.#changes += 1;
      this.#changedAt.set(id, this.#changes);
    };
    tx.onCommit(() => {
      end();
      this.#set(row);
      this.#readIn.set(id, this.#round);
    });
    tx.onRollback(() => {
      end();
      // What was there before may be outdated.
      this.#readIn.delete(id);
    });
  }

  #set(row: WorkspaceRow): Workspace {
    const workspace = workspaceFrom(row, this.#defaults);
    this.#byId.set(row.id, { workspace, row });
    return workspace;
  }
}
