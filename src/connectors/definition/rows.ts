import type { Sql, Tx } from "../../store/db.ts";
import type { ConnectorStatus, StoredConnector } from "../connector.ts";
import type { KeptTool } from "../tools/kept-tool.ts";

interface ConnectorRow {
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

/** A connector, and whether its row is unchanged since this server wrote it. */
export interface LoadedConnector {
  readonly stored: StoredConnector;
  readonly isIntact: boolean;
  /** See `ConnectorMarks`. */
  readonly seal: string | null;
}

/** By which a connector's row is compared, without its definition and tools. */
export interface ConnectorMarks extends Pick<StoredConnector, "id" | "name" | "status" | "error"> {
  /** The row's seal, which covers its definition and tools. Null if it has none. */
  readonly seal: string | null;
}

/** The stored result of a listing. Its tools are text, because it is only compared. */
export interface StoredListing extends Pick<StoredConnector, "status" | "error"> {
  readonly tools: string;
}

/** A workspace's connectors, oldest first. Yielded one at a time: each may have megabytes of tools and definition. */
export async function* loadConnectors(sql: Sql, workspaceId: number): AsyncGenerator<LoadedConnector> {
  const find = "SELECT id FROM connectors WHERE workspace_id = $1 ORDER BY id";
  for (const { id } of await sql.all<{ id: number }>(find, [workspaceId])) {
    const loaded = await loadConnector(sql, { workspaceId, id });
    if (loaded) yield loaded;
  }
}

export async function loadConnector(
  sql: Sql,
  { workspaceId, id }: Pick<StoredConnector, "workspaceId" | "id">,
): Promise<LoadedConnector | undefined> {
  const find = `SELECT ${COLUMNS} FROM connectors WHERE workspace_id = $1 AND id = $2`;
  const row = await sql.get<ConnectorRow>(find, [workspaceId, id]);
  return row && { stored: fromRow(row), isIntact: sql.seals.fits("connectors", row), seal: textOf(row.seal) };
}

/** The marks of a workspace's connectors, or of the one with this name. */
export async function storedMarks(sql: Sql, workspaceId: number, name?: string): Promise<ConnectorMarks[]> {
  const find = "SELECT id, name, status, error, seal FROM connectors WHERE workspace_id = $1";
  type Row = Pick<ConnectorRow, "id" | "name" | "status" | "error" | "seal">;
  const rows =
    name === undefined
      ? await sql.all<Row>(find, [workspaceId])
      : await sql.all<Row>(`${find} AND name = $2`, [workspaceId, name]);
  return rows.map((row) => ({ ...row, seal: textOf(row.seal) }));
}

/** Undefined if the connector was removed. */
export function storedListing(
  sql: Sql,
  { workspaceId, id }: Pick<StoredConnector, "workspaceId" | "id">,
): Promise<StoredListing | undefined> {
  const find = "SELECT status, error, tools FROM connectors WHERE workspace_id = $1 AND id = $2";
  return sql.get<StoredListing>(find, [workspaceId, id]);
}

/** A connector's encrypted definition. Undefined if the connector was removed. */
export async function readDefinition(
  sql: Sql,
  { workspaceId, id }: Pick<StoredConnector, "workspaceId" | "id">,
): Promise<Uint8Array | undefined> {
  const find = "SELECT definition FROM connectors WHERE workspace_id = $1 AND id = $2";
  const row = await sql.get<Pick<ConnectorRow, "definition">>(find, [workspaceId, id]);
  return row?.definition;
}

/** The number of a workspace's connectors, and the bytes of their definitions. */
export async function countConnectors(
  sql: Sql,
  workspaceId: number,
): Promise<{ readonly count: number; readonly bytes: number }> {
  const count =
    "SELECT count(*) AS count, coalesce(sum(octet_length(definition)), 0) AS bytes FROM connectors WHERE workspace_id = $1";
  return (await sql.get<{ count: number; bytes: number }>(count, [workspaceId])) ?? { count: 0, bytes: 0 };
}

/** @returns undefined if the name is taken */
export async function insertConnector(
  tx: Tx,
  connector: Omit<StoredConnector, "id">,
): Promise<StoredConnector | undefined> {
  const row = await tx.get<Pick<ConnectorRow, "id">>(
    `INSERT INTO connectors (workspace_id, name, kind, definition, scopes, status, error, tools, authorised_by,
       authorised_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT (workspace_id, name) DO NOTHING RETURNING id`,
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
  return { ...connector, id: row.id };
}

/**
 * Stores the result of the last listing. By id: a connector of the same name may have replaced it.
 * @param hasNewTools false: the stored tools are current and are not written again. They may be megabytes
 */
export async function updateConnector(
  tx: Tx,
  connector: Pick<StoredConnector, "workspaceId" | "id">,
  said: Pick<StoredConnector, "status" | "error" | "tools">,
  hasNewTools: boolean,
): Promise<boolean> {
  const { workspaceId, id } = connector;
  const where = "WHERE workspace_id = $1 AND id = $2";
  const values = [workspaceId, id, said.status, said.error];
  if (!hasNewTools) {
    return (await tx.run(`UPDATE connectors SET status = $3, error = $4 ${where}`, values)) > 0;
  }
  const changed = await tx.seals.change(tx, "connectors", { id }, () =>
    tx.run(`UPDATE connectors SET status = $3, error = $4, tools = $5 ${where}`, [
      ...values,
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

function fromRow(row: ConnectorRow): StoredConnector {
  return {
    id: row.id,
    workspaceId: row.workspace_id,
    name: row.name,
    kind: row.kind,
    sealed: row.definition,
    scopes: JSON.parse(row.scopes) as string[],
    status: row.status,
    error: row.error,
    tools: JSON.parse(row.tools) as KeptTool[],
    authorisedBy: row.authorised_by,
    authorisedAt: row.authorised_at,
  };
}

function textOf(seal: Uint8Array | null): string | null {
  return seal === null ? null : seal.toHex();
}
