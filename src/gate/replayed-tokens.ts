import type { Tokens } from "../access/tokens.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { indexedEntries } from "../ledger/indexed-entries.ts";
import { LedgerChanged } from "../ledger/ledger-changed.ts";
import type { LedgerLists } from "../ledger/lists.ts";
import { parsedEntry } from "../ledger/parsed-entry.ts";
import type { StoredEntry } from "../ledger/query.ts";
import type { Db } from "../store/db.ts";

export interface ReplayedTokensParts {
  readonly db: Db;
  readonly lists: Pick<LedgerLists, "read">;
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

const ACTIONS = ["token.revoke", "token.rotate"] as const;

/**
 * Ends tokens whose rows date from before their revocation or last rotation. Someone restored such a row: its seal
 * matches, since the server once wrote it, but the ledger shows what happened since.
 *
 * `check` uses the ledger's index, which takes milliseconds. `start` repeats the check in the background with entries
 * verified against the signed tree (1 ms per 256 entries), and so finds what a changed index hides.
 */
export class ReplayedTokens {
  readonly #parts: ReplayedTokensParts;
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(parts: ReplayedTokensParts) {
    this.#parts = parts;
  }

  /** MUST be called before any caller is admitted. */
  async check(): Promise<void> {
    const { db, workspaceIds } = this.#parts;
    for (const id of workspaceIds()) await this.#examine(id, (action) => indexedEntries(db, id, action));
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
    const span = { first: 1, last: Number.MAX_SAFE_INTEGER, order: "asc" } as const;
    for (const id of workspaceIds()) {
      try {
        await this.#examine(id, (action) => lists.read(id, { action }, span));
      } catch (error) {
        // The lists report where it has changed.
        if (error instanceof LedgerChanged) continue;
        log.warn("could not check for restored tokens that had been revoked; the next start checks again", {
          error,
        });
        return;
      }
    }
  }

  async #examine(
    workspaceId: number,
    read: (action: string) => AsyncIterable<readonly StoredEntry[]>,
  ): Promise<void> {
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
