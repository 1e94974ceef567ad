import type { Sql, Tx } from "../store/db.ts";
import type { ConnectorStatus, StoredConnector } from "./connector.ts";
import type { OfferedTool } from "./source.ts";

interface Row {
  readonly id: number;
  readonly workspace_id: number;
  readonly name: string;
  readonly kind: "mcp" | "openapi";
  readonly definition: Uint8Array;
  readonly scopes: string;
  readonly status: ConnectorStatus;
  readonly error: string | null;
  readonly tools: string;
  readonly authorised_by: string;
  readonly authorised_at: number;
  readonly seal: Uint8Array | null;
}

const COLUMNS =
  "id, workspace_id, name, kind, definition, scopes, status, error, tools, authorised_by, authorised_at, seal";

/** A connector, and whether its row is as this server has written it. */
export interface LoadedConnector {
  readonly stored: StoredConnector;
  readonly isIntact: boolean;
}

export async function loadConnectors(sql: Sql, workspaceId: number): Promise<LoadedConnector[]> {
  const rows = await sql.all<Row>(`SELECT ${COLUMNS} FROM connectors WHERE workspace_id = $1 ORDER BY name`, [
    workspaceId,
  ]);
  return rows.map((row) => ({ stored: fromRow(row), isIntact: sql.seals.fits("connectors", row) }));
}

export async function countConnectors(sql: Sql, workspaceId: number): Promise<number> {
  const row = await sql.get<{ n: number }>("SELECT count(*) AS n FROM connectors WHERE workspace_id = $1", [
    workspaceId,
  ]);
  return row?.n ?? 0;
}

/** @returns undefined where the name is taken */
export async function insertConnector(
  tx: Tx,
  connector: Omit<StoredConnector, "id">,
): Promise<StoredConnector | undefined> {
  const row = await tx.get<Row>(
    `INSERT INTO connectors (workspace_id, name, kind, definition, scopes, status, error, tools, authorised_by,
       authorised_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT (workspace_id, name) DO NOTHING RETURNING ${COLUMNS}`,
    [
      connector.workspaceId,
      connector.name,
      connector.kind,
      connector.sealed,
      JSON.stringify(connector.scopes),
      connector.status,
      connector.error,
      JSON.stringify(connector.tools),
      connector.authorisedBy,
      connector.authorisedAt,
    ],
  );
  if (!row) return undefined;
  await tx.seals.seal(tx, "connectors", { id: row.id });
  return fromRow(row);
}

/** What the upstream said last. By id: a connector of the same name may have taken its place. */
export async function updateConnector(
  tx: Tx,
  connector: Pick<StoredConnector, "workspaceId" | "id">,
  said: Pick<StoredConnector, "status" | "error" | "tools">,
): Promise<boolean> {
  const { workspaceId, id } = connector;
  const changed = await tx.seals.change(tx, "connectors", { id }, () =>
    tx.run("UPDATE connectors SET status = $3, error = $4, tools = $5 WHERE workspace_id = $1 AND id = $2", [
      workspaceId,
      id,
      said.status,
      said.error,
      JSON.stringify(said.tools),
    ]),
  );
  return changed > 0;
}

export async function deleteConnector(
  tx: Tx,
  connector: Pick<StoredConnector, "workspaceId" | "id">,
): Promise<boolean> {
  const gone = await tx.run("DELETE FROM connectors WHERE workspace_id = $1 AND id = $2", [
    connector.workspaceId,
    connector.id,
  ]);
  return gone > 0;
}

function fromRow(row: Row): StoredConnector {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    kind: row.kind,
    sealed: row.definition,
    scopes: JSON.parse(row.scopes) as string[],
    status: row.status,
    error: row.error,
    tools: JSON.parse(row.tools) as OfferedTool[],
    authorisedBy: row.authorised_by,
    authorisedAt: row.authorised_at,
  };
}
