import type { RestoredNote } from "../store/backup/restored-note.ts";
import type { Db } from "../store/db.ts";
import type { Ledger } from "./ledger.ts";

export interface RestorationParts {
  readonly db: Db;
  readonly ledger: Ledger;
  workspaces(): readonly { readonly id: number }[];
}

/** Records in all ledgers that they were restored, and from what (`store.restore`). */
export async function recordRestoration(
  { db, ledger, workspaces }: RestorationParts,
  { file, created_at, restored_at, program, unfinished }: RestoredNote,
): Promise<void> {
  const ids = workspaces().map(({ id }) => id);
  await db.tx(ids, async (tx) => {
    for (const id of ids) {
      await ledger.append(tx, id, {
        ...{ phase: "single", action: "store.restore", outcome: "succeeded" },
        ...{ channel: "system", actor: "system" },
        detail: { file, created_at, restored_at, program, unfinished },
      });
    }
  });
}
