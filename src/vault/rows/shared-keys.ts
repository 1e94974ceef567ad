import type { Db } from "../../store/db.ts";
import type { DocumentKeys } from "./document-keys.ts";

/** Takes keys from PostgreSQL's sequence, which all nodes share, and which forgets none that it has given. */
export function sharedKeys(db: Db): DocumentKeys {
  return {
    async next() {
      const row = await db.get<{ key: number }>(
        "SELECT nextval(pg_get_serial_sequence('vault_documents', 'key')) AS key",
      );
      if (!row) throw new Error("a sequence has no next number");
      return row.key;
    },
  };
}
