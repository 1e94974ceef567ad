import type { Db, Sql, Tx } from "../store/db.ts";
import type { RowSeals, SealedRow } from "../store/seals/seals.ts";
import { type Caller, type ToolsMode, tokenIdOf } from "./caller.ts";
import { KeptJson } from "./kept-json.ts";
import type { Token, TokenRequest } from "./tokens.ts";

/** A token with the names of its workspace and its agent. */
export interface TokenRow {
  readonly id: string;
  readonly workspace_id: number;
  readonly workspace: string;
  readonly name: string;
  readonly agent_id: number | null;
  readonly agent: string | null;
  readonly agent_archived_at: number | null;
  readonly scopes: string;
  readonly tools_mode: ToolsMode;
  readonly person: string | null;
  readonly role: string | null;
  readonly expires_at: number | null;
  readonly created_by: string;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly secret_hash: Uint8Array;
  readonly previous_hash: Uint8Array | null;
  readonly previous_until: number | null;
  readonly rotations: number;
  readonly seal: Uint8Array | null;
}

export const SELECT_TOKEN = `SELECT t.id, t.workspace_id, w.name AS workspace, t.name, t.agent_id, a.name AS agent,
  a.archived_at AS agent_archived_at, t.scopes, t.tools_mode, t.person, t.role, t.expires_at, t.created_by, t.created_at, t.last_used_at,
  t.secret_hash, t.previous_hash, t.previous_until, t.rotations, t.seal
  FROM tokens t JOIN workspaces w ON w.id = t.workspace_id LEFT JOIN agents a ON a.id = t.agent_id`;

/** Seals and inserts a new token. */
export function insertToken(tx: Tx, row: SealedRow<"tokens">): void {
  tx.write(
    `INSERT INTO tokens (id, workspace_id, name, agent_id, scopes, tools_mode, person, role, secret_hash, expires_at,
       created_by, created_at, rotations, seal)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
    [
      row.id,
      row.workspace_id,
      row.name,
      row.agent_id,
      row.scopes,
      row.tools_mode,
      row.person,
      row.role,
      row.secret_hash,
      row.expires_at,
      row.created_by,
      row.created_at,
      row.rotations,
      tx.seals.of("tokens", row),
    ],
  );
}

/** When a token that is issued now expires; null if it does not. */
export function expiryOf(
  { expiresIn, notAfter = Number.POSITIVE_INFINITY }: TokenRequest,
  now: number,
): number | null {
  const end = Math.min(expiresIn === null ? Number.POSITIVE_INFINITY : now + expiresIn, notAfter);
  return end === Number.POSITIVE_INFINITY ? null : end;
}

/** When a token or session was last used, until it is written. */
export interface LastUse {
  readonly workspaceId: number;
  readonly at: number;
}

/**
 * Writes these uses, by id, and forgets those that have not changed since. Another node may have written a later use of
 * the same token. In the order of the ids, so that two nodes do not wait for each other.
 */
export async function saveLastUses(
  db: Pick<Db, "tx">,
  table: "tokens" | "sessions",
  used: Map<string, LastUse>,
): Promise<void> {
  if (used.size === 0) return;
  const batch = [...used].sort(([a], [b]) => (a < b ? -1 : 1));
  await db.tx(null, async (tx) => {
    for (const [id, { workspaceId, at }] of batch) {
      const change = `UPDATE ${table} SET last_used_at = $3
        WHERE workspace_id = $1 AND id = $2 AND (last_used_at IS NULL OR last_used_at < $3)`;
      tx.write(change, [workspaceId, id, at]);
    }
  });
  for (const [id, use] of batch) if (used.get(id) === use) used.delete(id);
}

/** How many tokens of a workspace have not been revoked, including expired ones. */
export async function countTokens(sql: Pick<Sql, "get">, workspaceId: number): Promise<number> {
  const row = await sql.get<{ count: number }>(
    "SELECT COUNT(*) AS count FROM tokens WHERE workspace_id = $1 AND revoked_at IS NULL",
    [workspaceId],
  );
  return row?.count ?? 0;
}

/** When a token ends, whichever of its secrets is used. Undefined if it has ended for good. May be in the past. */
export async function tokenEnd(sql: Sql, workspaceId: number, id: string): Promise<number | undefined> {
  const row = await unendedToken(sql, workspaceId, id);
  return row && (row.expires_at ?? Number.POSITIVE_INFINITY);
}

/** When one of a token's secrets ends, by its hash. Undefined if it has ended for good. May be in the past. */
export async function secretEnd(
  sql: Sql,
  workspaceId: number,
  id: string,
  secretHash: Uint8Array,
): Promise<number | undefined> {
  const row = await unendedToken(sql, workspaceId, id);
  return row && Math.min(row.expires_at ?? Number.POSITIVE_INFINITY, secretUntil(row, secretHash));
}

export interface CallerEnd {
  /**
   * Milliseconds since the Unix epoch; infinite without an end. Tokens that the caller issues or rotates MUST NOT
   * outlive it.
   */
  readonly until: number;
  /** Whether the caller has a replaced secret in its grace period, or a session that may come from one. */
  readonly isReplaced: boolean;
}

/**
 * When a caller's authority over tokens ends. A session counts with its token's end, although the session itself ends
 * earlier. During the grace period after a rotation, nothing shows which secret opened a session, so a session that
 * ends within the period keeps its own end.
 */
export async function callerEnd(
  sql: Sql,
  caller: Pick<Caller, "workspaceId" | "actor" | "session" | "grant">,
  now: number,
): Promise<CallerEnd> {
  const id = tokenIdOf(caller);
  if (id === null) return { until: Number.POSITIVE_INFINITY, isReplaced: false };
  const row = await unendedToken(sql, caller.workspaceId, id);
  if (!row) return { until: 0, isReplaced: true };
  const end = row.expires_at ?? Number.POSITIVE_INFINITY;
  const own = (await caller.grant?.endsAt(sql)) ?? end;
  const isReplaced = row.previous_until !== null && now < row.previous_until && own <= row.previous_until;
  return { until: isReplaced || !caller.session ? own : end, isReplaced };
}

async function unendedToken(sql: Sql, workspaceId: number, id: string): Promise<TokenRow | undefined> {
  const row = await sql.get<TokenRow>(
    `${SELECT_TOKEN} WHERE t.workspace_id = $1 AND t.id = $2 AND t.revoked_at IS NULL AND a.archived_at IS NULL`,
    [workspaceId, id],
  );
  return row && sql.seals.fits("tokens", row) ? row : undefined;
}

/** When the secret with this hash stops working. The current secret does not expire by itself. */
function secretUntil(
  { secret_hash, previous_hash, previous_until }: TokenRow,
  secretHash: Uint8Array,
): number {
  const hash = Buffer.from(secretHash);
  if (hash.equals(secret_hash)) return Number.POSITIVE_INFINITY;
  return previous_hash !== null && previous_until !== null && hash.equals(previous_hash) ? previous_until : 0;
}

const callerScopes = new KeptJson<readonly string[]>();

/** Undefined if the token's agent is archived, or this server did not write the row. */
export function callerFrom(seals: RowSeals, row: TokenRow): Caller | undefined {
  if (!seals.fits("tokens", row)) return undefined;
  // Agents are archived, never deleted: without its agent's row, the token would not act as an agent.
  if (row.agent_id !== null && (row.agent === null || row.agent_archived_at !== null)) return undefined;
  return {
    workspaceId: row.workspace_id,
    workspace: row.workspace,
    actor: `token:${row.id}`,
    name: row.name,
    agent: row.agent_id === null || row.agent === null ? null : { id: row.agent_id, name: row.agent },
    scopes: callerScopes.parse(row.scopes),
    toolsMode: row.tools_mode,
    person: row.person,
    role: row.role,
  };
}

export function tokenFrom(row: TokenRow, used: ReadonlyMap<string, LastUse>): Token {
  return {
    id: row.id,
    name: row.name,
    agent: row.agent,
    agentId: row.agent_id,
    scopes: JSON.parse(row.scopes) as string[],
    toolsMode: row.tools_mode,
    person: row.person,
    role: row.role,
    expiresAt: row.expires_at,
    createdBy: row.created_by,
    createdAt: row.created_at,
    lastUsedAt: used.get(row.id)?.at ?? row.last_used_at,
  };
}
