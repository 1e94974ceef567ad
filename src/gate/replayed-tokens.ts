import type { Tokens } from "../access/tokens.ts";
import type { Clock } from "../base/clock.ts";
import { OperatorError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { BLOCK, type Span } from "../ledger/block-index.ts";
import { indexedBlocks, spanOfBlock } from "../ledger/indexed-blocks.ts";
import { LedgerChanged } from "../ledger/ledger-changed.ts";
import type { LedgerLists } from "../ledger/lists.ts";
import { parsedEntry } from "../ledger/parsed-entry.ts";
import type { StoredEntry } from "../ledger/query.ts";
import type { Db } from "../store/db.ts";

export interface ReplayedTokensParts {
  readonly db: Db;
  readonly lists: Pick<LedgerLists, "read" | "size">;
  readonly tokens: Pick<Tokens, "changeWith">;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
  workspaceIds(): readonly number[];
}

/** What the ledger records about a token. */
interface TokenHistory {
  isRevoked: boolean;
  rotations: number;
}

const ALL: Span = { first: 1, last: Number.MAX_SAFE_INTEGER, order: "asc" };
const ACTIONS = ["token.revoke", "token.rotate"] as const;

type Entries = AsyncIterable<readonly StoredEntry[]>;

/**
 * Ends tokens whose rows date from before their revocation or last rotation. Someone restored such a row: its seal
 * matches, since the server once wrote it, but the ledger shows what happened since.
 *
 * `check` reads the blocks that the ledger's index names (1 ms each) and refuses the start if one of them differs from
 * what was signed, since it could hide a revocation. `start` reads all entries in the background, and so finds what a
 * changed index hides. It skips changed blocks and reads the others.
 */
export class ReplayedTokens {
  readonly #parts: ReplayedTokensParts;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(parts: ReplayedTokensParts) {
    this.#parts = parts;
  }

  /** MUST be called before any caller is admitted. @throws OperatorError if the ledger was changed */
  async check(): Promise<void> {
    for (const id of this.#parts.workspaceIds()) {
      try {
        await this.#examine(id, (action) => this.#readIndexed(id, action));
      } catch (error) {
        if (!(error instanceof LedgerChanged)) throw error;
        throw new OperatorError(
          `the ledger of workspace ${id} was changed in entries that record which tokens were revoked or rotated: ${error.message}`,
          "run `gatehouse ledger verify`, and restore a backup of the data directory",
        );
      }
    }
  }

  start(): void {
    this.#running = this.#examineAll();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #examineAll(): Promise<void> {
    const { lists, log, workspaceIds } = this.#parts;
    for (const id of workspaceIds()) {
      try {
        const isWhole = await this.#tryAll(id, (action) => lists.read(id, { action }, ALL));
        if (isWhole || this.#stopped) continue;
        await this.#examine(id, (action) => this.#readUnchanged(id, action));
        log.error(
          "entries of the ledger were changed, so tokens that they revoked or rotated may still be valid: run `gatehouse ledger verify`, and revoke any token that you do not recognise",
          { workspace: id },
        );
      } catch (error) {
        log.warn("could not check for restored tokens that had been revoked; the next start checks again", {
          error,
        });
        return;
      }
    }
  }

  /** @returns false if the ledger was changed; the lists report where */
  async #tryAll(workspaceId: number, read: (action: string) => Entries): Promise<boolean> {
    try {
      await this.#examine(workspaceId, read);
      return true;
    } catch (error) {
      if (error instanceof LedgerChanged) return false;
      throw error;
    }
  }

  async *#readIndexed(workspaceId: number, action: string): AsyncGenerator<readonly StoredEntry[], void> {
    const { db, lists } = this.#parts;
    for (const span of await indexedBlocks(db, workspaceId, action)) {
      yield* lists.read(workspaceId, { action }, span);
    }
  }

  /** Reads all blocks except those that differ from what was signed. */
  async *#readUnchanged(workspaceId: number, action: string): AsyncGenerator<readonly StoredEntry[], void> {
    const { lists } = this.#parts;
    const blocks = Math.ceil(lists.size(workspaceId) / BLOCK);
    for (let block = 0; block < blocks; block++) {
      try {
        yield* lists.read(workspaceId, { action }, spanOfBlock(block));
      } catch (error) {
        if (!(error instanceof LedgerChanged)) throw error;
      }
    }
  }

  async #examine(workspaceId: number, read: (action: string) => Entries): Promise<void> {
    const known = new Map<string, TokenHistory>();
    for (const action of ACTIONS) {
      for await (const entries of read(action)) {
        if (this.#stopped) return;
        for (const { bytes } of entries) take(known, bytes);
      }
    }
    if (known.size > 0) await this.#endReplayed(workspaceId, known);
  }

  async #endReplayed(workspaceId: number, known: ReadonlyMap<string, TokenHistory>): Promise<void> {
    const { db, tokens, clock } = this.#parts;
    const rows = await db.all<{ id: string; rotations: number }>(
      "SELECT id, rotations FROM tokens WHERE workspace_id = $1 AND revoked_at IS NULL",
      [workspaceId],
    );
    const replayed = rows.filter(({ id, rotations }) => {
      const history = known.get(id);
      return history && (history.isRevoked || history.rotations > rotations);
    });
    if (replayed.length === 0) return;
    await db.tx(async (tx) => {
      tokens.changeWith(tx);
      for (const { id } of replayed) {
        await tx.run("UPDATE tokens SET revoked_at = $3, seal = NULL WHERE workspace_id = $1 AND id = $2", [
          workspaceId,
          id,
          clock.now(),
        ]);
        await tx.run("DELETE FROM sessions WHERE workspace_id = $1 AND token_id = $2", [workspaceId, id]);
      }
    });
    for (const { id } of replayed) db.seals.report("tokens", { workspace_id: workspaceId, id });
  }
}

function take(known: Map<string, TokenHistory>, bytes: string): void {
  const { action, outcome, detail } = parsedEntry(bytes);
  if (outcome !== "succeeded" || typeof detail?.token !== "string") return;
  const history = known.get(detail.token) ?? { isRevoked: false, rotations: 0 };
  known.set(detail.token, history);
  if (action === "token.revoke") history.isRevoked = true;
  else if (typeof detail.rotation === "number") {
    history.rotations = Math.max(history.rotations, detail.rotation);
  }
}
