import { type Boundary, ROOT_SCOPE, rangeBelow } from "../../access/memory-scope.ts";
import type { Sql, SqlValue, Tx } from "../../store/db.ts";
import type { VaultDocument } from "../document.ts";
import type { Metadata, PreparedPassage, SegmentBytes, SegmentChange } from "../messages.ts";
import { Raced } from "../raced.ts";
import { keyOf, PER_DOCUMENT } from "./keys.ts";
import { cutPages, pageKeys, type TextPage } from "./pages.ts";

/** The vault's rows. Every query that produces an answer names its workspace, and its boundary if there is one. */

interface DocumentRow
  extends Pick<
    VaultDocument,
    "key" | "id" | "title" | "scope" | "characters" | "chunks" | "pages" | "pending"
  > {
  readonly scope_id: number;
  readonly source_uri: string | null;
  readonly metadata: string;
  readonly content_type: string;
  readonly content_hash: Uint8Array;
  readonly created_by: string;
  readonly created_at: number;
  readonly updated_at: number;
}

const DOCUMENT = `SELECT d.key, d.id, d.title, d.scope_id, s.path AS scope, d.source_uri, d.metadata, d.content_type,
  d.content_hash, d.characters, d.chunks, d.pages, d.created_by, d.created_at, d.updated_at,
  (SELECT count(*) FROM vault_pending AS p WHERE p.space_id = $2
   AND p.chunk_key BETWEEN d.key * ${PER_DOCUMENT} AND d.key * ${PER_DOCUMENT} + ${PER_DOCUMENT - 1}) AS pending`;
const BY_DOCUMENT = `FROM vault_documents AS d
  JOIN vault_scopes AS s ON d.scope_id = s.id AND d.workspace_id = $1 AND d.state = 'live'`;

export async function findDocument(
  sql: Sql,
  workspaceId: number,
  space: number,
  id: string,
): Promise<VaultDocument | undefined> {
  const row = await sql.get<DocumentRow>(`${DOCUMENT} ${BY_DOCUMENT} WHERE d.id = $3`, [
    workspaceId,
    space,
    id,
  ]);
  return row && fromRow(row);
}

/** The scope of a live document: nothing else is read before it is known whether the caller may see the document. */
export async function findScope(sql: Sql, workspaceId: number, id: string): Promise<string | undefined> {
  const row = await sql.get<{ path: string }>(
    `SELECT s.path FROM vault_documents AS d JOIN vault_scopes AS s ON s.id = d.scope_id
     WHERE d.workspace_id = $1 AND d.id = $2 AND d.state = 'live'`,
    [workspaceId, id],
  );
  return row?.path;
}

export interface DocumentFilter {
  /** Hash of a source. */
  readonly source?: Uint8Array | undefined;
}

/** Newest first, after the id `before`. Returns one more than `limit` if there are more. */
export async function listDocuments(
  sql: Sql,
  workspaceId: number,
  space: number,
  boundary: Boundary,
  filter: DocumentFilter,
  limit: number,
  before: string | undefined,
): Promise<VaultDocument[]> {
  if (boundary.length === 0) return [];
  const params: SqlValue[] = [workspaceId, space];
  const param = (value: SqlValue) => `$${params.push(value)}`;
  // A whole workspace is read in id order; everything else by scope.
  const isWhole = boundary.includes(ROOT_SCOPE) && filter.source === undefined;
  const from = isWhole ? `${BY_DOCUMENT} WHERE 1 = 1` : byScope(boundary, param);
  const source = filter.source === undefined ? "" : ` AND d.source_hash = ${param(filter.source)}`;
  const after = before === undefined ? "" : ` AND d.id < ${param(before)}`;
  const rows = await sql.all<DocumentRow>(
    `${DOCUMENT} ${from}${source}${after} ORDER BY d.id DESC LIMIT ${param(limit + 1)}`,
    params,
  );
  return rows.map(fromRow);
}

/**
 * The documents of a boundary's scopes. SQLite keeps the order of a cross join, and looks each scope up by a range:
 * rows outside are not read, so timing reveals nothing about them.
 */
function byScope(boundary: Boundary, param: (value: SqlValue) => string): string {
  const scopes = boundary.flatMap((path) => {
    const select = "SELECT id, path FROM vault_scopes WHERE workspace_id = $1";
    if (path === ROOT_SCOPE) return [select];
    const [first, last] = rangeBelow(path);
    return [
      `${select} AND path = ${param(path)}`,
      `${select} AND path > ${param(first)} AND path < ${param(last)}`,
    ];
  });
  // The unary plus keeps SQLite from using the index of all ids, which would read rows outside the boundary.
  return `FROM (${scopes.join(" UNION ALL ")}) AS s CROSS JOIN vault_documents AS d
    WHERE d.scope_id = s.id AND +d.workspace_id = $1 AND d.state = 'live'`;
}

/** A range of a document's text, to its end if `end` is not given. */
export async function readText(sql: Sql, document: number, start: number, end: number): Promise<string> {
  const pages = await sql.all<TextPage>(
    'SELECT "start", text FROM vault_pages WHERE key BETWEEN $1 AND $2 ORDER BY key',
    pageKeys(document, start, end),
  );
  return cutPages(pages, start, end);
}

/**
 * The key of a scope, which is created if missing. Like all that creates and deletes scopes, the transaction MUST name the
 * workspace.
 */
export async function scopeIdOf(tx: Tx, workspaceId: number, path: string): Promise<number> {
  const known = await tx.get<{ id: number }>(
    "SELECT id FROM vault_scopes WHERE workspace_id = $1 AND path = $2",
    [workspaceId, path],
  );
  const row =
    known ??
    (await tx.get<{ id: number }>(
      "INSERT INTO vault_scopes (workspace_id, path) VALUES ($1, $2) RETURNING id",
      [workspaceId, path],
    ));
  if (!row) throw new Error("a scope was not made");
  return row.id;
}

export interface NewDocument extends Omit<VaultDocument, "scope" | "contentHash" | "pending"> {
  readonly workspaceId: number;
  readonly sourceHash: Uint8Array | null;
  /** One hash for each name and value. */
  readonly metadataHashes: readonly Uint8Array[];
  readonly contentHash: Uint8Array;
}

/** Inserts the row, invisible to everybody so far. */
export function insertDocument(tx: Tx, document: NewDocument): void {
  tx.write(
    `INSERT INTO vault_documents (key, workspace_id, id, scope_id, state, title, source_uri, source_hash, metadata,
       content_type, content_hash, characters, chunks, pages, created_by, created_at, updated_at)
     VALUES ($1, $2, $3, $4, 'building', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
    [
      document.key,
      document.workspaceId,
      document.id,
      document.scopeId,
      document.title,
      document.sourceUri,
      document.sourceHash,
      JSON.stringify(document.metadata),
      document.contentType,
      document.contentHash,
      document.characters,
      document.chunks,
      document.pages,
      document.createdBy,
      document.createdAt,
      document.updatedAt,
    ],
  );
}

/** Makes a completely written document visible to reads, lists and searches. */
export function showDocument(
  tx: Tx,
  document: NewDocument,
  created: { readonly at: number; readonly by: string },
): void {
  tx.write("UPDATE vault_documents SET state = 'live', created_at = $2, created_by = $3 WHERE key = $1", [
    document.key,
    created.at,
    created.by,
  ]);
  tx.write("UPDATE vault_segments SET live = 1, document_key = NULL WHERE document_key = $1 AND live = 0", [
    document.key,
  ]);
  for (const hash of document.metadataHashes) {
    tx.write("INSERT INTO vault_metadata (scope_id, hash, document_key) VALUES ($1, $2, $3)", [
      document.scopeId,
      hash,
      document.key,
    ]);
  }
}

/**
 * Hides a document. Its remains are removed afterwards (`remover.ts`).
 * @throws Raced if it is hidden already, or its segments have changed since they were read
 */
export async function hideDocument(
  tx: Tx,
  key: number,
  change: SegmentChange,
  scopeId: number,
): Promise<void> {
  const hidden = await tx.run(
    "UPDATE vault_documents SET state = 'removing' WHERE key = $1 AND state = 'live'",
    [key],
  );
  if (hidden === 0) throw new Raced("the document is hidden already");
  tx.write("DELETE FROM vault_metadata WHERE document_key = $1", [key]);
  await swapSegments(tx, scopeId, change);
}

/** @throws Raced if another node has already replaced one of the removed segments */
export async function swapSegments(
  tx: Tx,
  scopeId: number,
  { removed, added }: SegmentChange,
): Promise<void> {
  for (const id of removed) {
    const gone = await tx.run("DELETE FROM vault_segments WHERE id = $1", [id]);
    if (gone === 0) throw new Raced("segments have changed");
  }
  for (const segment of added) insertSegment(tx, scopeId, null, segment);
}

/** `document` null: searchable at once; otherwise once that document is visible. */
export function insertSegment(
  tx: Tx,
  scopeId: number,
  document: number | null,
  { passages, bytes }: SegmentBytes,
): void {
  tx.write(
    "INSERT INTO vault_segments (scope_id, document_key, live, chunks, data) VALUES ($1, $2, $3, $4, $5)",
    [scopeId, document, document === null ? 1 : 0, passages, bytes],
  );
}

export function insertPage(tx: Tx, document: number, place: number, page: TextPage): void {
  tx.write('INSERT INTO vault_pages (key, "start", text) VALUES ($1, $2, $3)', [
    keyOf(document, place),
    page.start,
    page.text,
  ]);
}

export function insertChunk(
  tx: Tx,
  document: number,
  place: number,
  id: string,
  { start, end, hash }: PreparedPassage,
): void {
  tx.write('INSERT INTO vault_chunks (key, id, "start", "end", hash) VALUES ($1, $2, $3, $4, $5)', [
    keyOf(document, place),
    id,
    start,
    end,
    hash,
  ]);
}

function fromRow(row: DocumentRow): VaultDocument {
  return {
    key: row.key,
    id: row.id,
    title: row.title,
    scopeId: row.scope_id,
    scope: row.scope,
    sourceUri: row.source_uri,
    metadata: JSON.parse(row.metadata) as Metadata,
    contentType: row.content_type,
    contentHash: Buffer.from(row.content_hash).toString("hex"),
    characters: row.characters,
    chunks: row.chunks,
    pages: row.pages,
    createdBy: row.created_by,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    pending: row.pending,
  };
}
