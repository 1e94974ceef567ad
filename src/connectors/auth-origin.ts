import type { Db } from "../store/db.ts";
import type { StoredConnector } from "./connector.ts";
import { ConnectorError } from "./source.ts";

/**
 * Keeps a connector's definition that says now where its `auth` may go, in place of the one that did not.
 * @param sealed the definition
 * @throws ConnectorError where the connector was removed
 */
export async function keepAuthOrigin(
  db: Db,
  { workspaceId, id, name }: Pick<StoredConnector, "workspaceId" | "id" | "name">,
  sealed: Uint8Array,
): Promise<void> {
  const changed = await db.tx((tx) =>
    tx.seals.change(tx, "connectors", { id }, () =>
      tx.run("UPDATE connectors SET definition = $3 WHERE workspace_id = $1 AND id = $2", [
        workspaceId,
        id,
        sealed,
      ]),
    ),
  );
  if (changed === 0) throw new ConnectorError("unavailable", `The connector ${name} was removed.`);
}
