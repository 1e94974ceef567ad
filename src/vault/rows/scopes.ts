import { type Boundary, ROOT_SCOPE, rangeBelow } from "../../access/memory-scope.ts";
import type { Sql, SqlValue } from "../../store/db.ts";

/** A scope with documents, not counting scopes below it. */
export interface VaultScope {
  readonly path: string;
  readonly documents: number;
  /** Total length of their texts, in UTF-16 code units. */
  readonly characters: number;
  /** When the latest of them was written. */
  readonly updatedAt: number;
}

interface ScopeRow {
  readonly path: string;
  readonly documents: number;
  readonly characters: number;
  readonly updated_at: number;
}

/** A part of a boundary: one path, or all paths between two. */
type ScopeRange = { readonly path: string } | { readonly above: string; readonly below: string };

/**
 * Scopes of a boundary that contain documents, by path, after the path `after`. Returns one more than `limit` if
 * there are more. Each part of the boundary is looked up by a range: rows outside are not read, so timing reveals
 * nothing about them.
 */
export async function listScopes(
  sql: Pick<Sql, "all">,
  workspaceId: number,
  boundary: Boundary,
  limit: number,
  after = "",
): Promise<VaultScope[]> {
  const found: VaultScope[] = [];
  for (const range of rangesOf(boundary)) {
    if (endOf(range) <= after) continue;
    const values: SqlValue[] = [workspaceId, limit + 1 - found.length];
    const rows = await sql.all<ScopeRow>(selectIn(range, after, values), values);
    found.push(...rows.map(fromRow));
    if (found.length > limit) break;
  }
  return found;
}

/**
 * Disjoint ranges in ascending order: of `a`, `a-b` and `a/c`, paths below `a` come last. Paths of the boundary MUST
 * NOT cover each other.
 */
function rangesOf(boundary: Boundary): ScopeRange[] {
  if (boundary.includes(ROOT_SCOPE)) return [{ above: "", below: "\u{10ffff}" }];
  return boundary
    .flatMap((path): ScopeRange[] => {
      const [above, below] = rangeBelow(path);
      return [{ path }, { above, below }];
    })
    .sort((a, b) => (beginOf(a) < beginOf(b) ? -1 : 1));
}

function beginOf(range: ScopeRange): string {
  return "path" in range ? range.path : range.above;
}

function endOf(range: ScopeRange): string {
  return "path" in range ? range.path : range.below;
}

/** SQLite keeps the order of a cross join: scopes by path, and the documents of each from an index on sizes. */
function selectIn(range: ScopeRange, after: string, values: SqlValue[]): string {
  const param = (value: SqlValue) => `$${values.push(value)}`;
  const inside =
    "path" in range
      ? `s.path = ${param(range.path)}`
      : `s.path > ${param(after > range.above ? after : range.above)} AND s.path < ${param(range.below)}`;
  return `SELECT s.path, count(*) AS documents, sum(d.characters) AS characters, max(d.updated_at) AS updated_at
    FROM vault_scopes AS s CROSS JOIN vault_documents AS d
    WHERE s.workspace_id = $1 AND ${inside} AND d.scope_id = s.id AND d.state = 'live'
    GROUP BY s.path ORDER BY s.path LIMIT $2`;
}

function fromRow(row: ScopeRow): VaultScope {
  return {
    path: row.path,
    documents: row.documents,
    characters: row.characters,
    updatedAt: row.updated_at,
  };
}
