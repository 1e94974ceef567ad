import { OperatorError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Db } from "../store/db.ts";
import type { SealingNote } from "../store/seals/sealing-note.ts";
import type { BrokenSeal } from "../store/seals/seals.ts";
import type { SecretKey } from "../store/secret-key.ts";
import type { EntryDraft } from "./entry.ts";
import type { Ledger } from "./ledger.ts";

export interface SealedRowsParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly key: Pick<SecretKey, "markSealed">;
  readonly log: Log;
  workspaces(): readonly { readonly id: number }[];
  /** Called once for each row whose seal does not match, for the metrics. */
  noticed(kind: "row_changed"): void;
}

/**
 * Records that the rows of an older data directory, or of one whose key was lost, were sealed as they were found.
 * From then on reports every row whose seal does not match: in the log, in the metrics and in its workspace's ledger
 * (`store.row_changed`).
 *
 * The entry names only the row, because the actors and agents in the row may be forged.
 */
export async function openSealedRows(parts: SealedRowsParts): Promise<void> {
  const { db, ledger, log, noticed } = parts;
  db.seals.onBroken(({ table, row, workspaceId }: BrokenSeal) => {
    noticed("row_changed");
    log.error("a row of the database was changed by another program; it is ignored", { table, row });
    if (workspaceId === null || !parts.workspaces().some(({ id }) => id === workspaceId)) return;
    ledger
      .record(workspaceId, { ...draft("store.row_changed", "failed"), detail: { table, row } })
      .catch((error: unknown) =>
        log.warn("a changed row was logged but could not be recorded", { table, row, error }),
      );
  });
  await recordSealing(parts);
  markSealed(parts);
}

async function recordSealing({ db, ledger, workspaces }: SealedRowsParts): Promise<void> {
  const note = await db.get<{ key: string; value: string; seal: Uint8Array | null }>(
    "SELECT key, value, seal FROM meta WHERE key = 'seals'",
  );
  if (!note || !db.seals.fits("meta", note)) return;
  const { rows, accepted, named } = JSON.parse(note.value) as SealingNote;
  const ids = workspaces().map(({ id }) => id);
  const [first] = ids;
  await db.tx(ids, async (tx) => {
    for (const id of ids) {
      const sealed = draft("store.seal", "succeeded");
      await ledger.append(tx, id, { ...sealed, detail: { rows, accepted } });
      for (const { table, row, workspaceId } of named) {
        // A row without a workspace is named once.
        const owner = ids.find((known) => known === workspaceId) ?? first;
        if (owner === id) await ledger.append(tx, id, { ...sealed, detail: { table, row } });
      }
    }
    tx.write("DELETE FROM meta WHERE key = 'seals'");
  });
}

/** A key file mounted read-only cannot be marked. The seals are on disk already, so the start continues. */
function markSealed({ key, log }: SealedRowsParts): void {
  try {
    key.markSealed();
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    log.warn(
      "secrets.key does not record that it has sealed rows: anyone who can write the database could remove the seals, and the next start would seal altered rows; make the data directory writable for this user for one start",
      { error },
    );
  }
}

function draft(action: string, outcome: "succeeded" | "failed"): EntryDraft {
  return { phase: "single", action, outcome, channel: "system", actor: "system" };
}
