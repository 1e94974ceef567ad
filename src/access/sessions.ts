import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { type Ids, isId, type RandomSource } from "../base/ids.ts";
import { redact } from "../base/log.ts";
import { Signal } from "../base/signal.ts";
import type { Db, Sql, Tx } from "../store/db.ts";
import type { Caller } from "./caller.ts";
import { CallerCache } from "./caller-cache.ts";
import { Grant } from "./grant.ts";
import { type Halt, Halts } from "./halts.ts";
import { createSecret, hashSecret, hashSecretHex, SESSION_PREFIX } from "./secret.ts";
import { SESSION_COLUMNS, type SessionRow } from "./session-rows.ts";
import { type LastUse, saveLastUses } from "./token-rows.ts";
import type { Tokens } from "./tokens.ts";

/**
 * A signed-in browser, without its secret, which only the browser's cookie contains. It belongs to the token that
 * signed in and has that token's current rights. Nothing of the token is copied, and the session ends with it.
 */
export interface Session {
  readonly id: string;
  readonly tokenId: string;
  /** The token's name. */
  readonly name: string;
  /** The agent that the token acts as. */
  readonly agent: string | null;
  readonly person: string | null;
  /** The User-Agent that the browser sent, cut to 200 characters. */
  readonly userAgent: string | null;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number;
}

export interface SignIn {
  readonly workspaceId: number;
  readonly tokenId: string;
  /**
   * The hash of the token's secret used to sign in, directly or through a link. The session does not outlive that
   * secret.
   */
  readonly secretHash: Uint8Array;
  readonly userAgent: string | null;
}

export interface OpenedSession {
  readonly id: string;
  readonly secret: string;
  readonly expiresAt: number;
}

export interface Sessions {
  /**
   * The caller that a secret belongs to. Undefined if the secret is unknown, expired or ended; these cases are not
   * distinguished. Synchronous for a secret seen before. Counts as a use of the token.
   */
  authenticate(secret: string): Caller | undefined | Promise<Caller | undefined>;
  /** See `Tokens.lastKnown`. */
  lastKnown(secret: string): Caller | undefined;
  /**
   * Opens a session. It lasts as long as configured, but no longer than its token. Undefined if the token is no
   * longer valid. If a token has more than 100 sessions, the oldest end.
   */
  open(tx: Tx, signIn: SignIn): Promise<OpenedSession | undefined>;
  /**
   * Newest first, before the id `before`. Returns more than `limit` if there are more. With `agentId`, only sessions
   * of that agent.
   */
  list(workspaceId: number, limit: number, before: string | undefined, agentId?: number): Promise<Session[]>;
  /** @throws Problem 404 `not_found` */
  get(workspaceId: number, id: string): Promise<Session>;
  /** Ends a session. Does nothing if it has already ended. */
  end(tx: Tx, workspaceId: number, id: string): Promise<void>;
  /**
   * Ends a session immediately, before this is written and even if it cannot be written. The caller MUST then write
   * the end (`end`) and lift the halt.
   */
  halt(id: string): Halt;
  /** Emits when open sessions may have ended. */
  readonly changed: Signal<void>;
  /** Saves when sessions were last used and deletes some expired ones. Called regularly and at shutdown. */
  keepHouse(): Promise<void>;
}

export interface SessionParts {
  readonly db: Db;
  readonly tokens: Pick<
    Tokens,
    "callerOf" | "validUntil" | "countUse" | "changed" | "ended" | "changeWith" | "revision"
  >;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: RandomSource;
  readonly lifetimeMs: number;
}

interface ListedSessionRow {
  readonly id: string;
  readonly token_id: string;
  readonly name: string;
  readonly agent: string | null;
  readonly person: string | null;
  readonly user_agent: string | null;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly expires_at: number;
}

/**
 * Open sessions: not expired, with a token that is not revoked (a session never outlives its token) and an agent that
 * is not archived.
 */
const OPEN = `FROM sessions s JOIN tokens t ON t.id = s.token_id LEFT JOIN agents a ON a.id = t.agent_id
  WHERE s.workspace_id = $1 AND s.expires_at > $2 AND t.revoked_at IS NULL AND a.archived_at IS NULL`;
const SELECT = `SELECT s.id, s.token_id, t.name, a.name AS agent, t.person, s.user_agent, s.created_at, s.last_used_at,
  s.expires_at ${OPEN}`;

/** Maximum number of sessions per token, so a program that signs in repeatedly does not fill the table. */
const PER_TOKEN = 100;
const USER_AGENT_LENGTH = 200;
const PURGE_LIMIT = 1_000;

interface CachedSession {
  readonly caller: Caller;
  /** `RightsRevision.settled` from before it was read. */
  readonly seen: number;
  readonly id: string;
  readonly tokenId: string;
  readonly expiresAt: number;
}

export function createSessions(parts: SessionParts): Sessions {
  const { db, tokens, clock, ids, random, lifetimeMs } = parts;
  const known = new CallerCache<CachedSession>();
  const used = new Map<string, LastUse>();
  const changed = new Signal<void>();
  const { revision } = tokens;

  tokens.ended.listen(({ token, agent, session }) => {
    known.remove(
      ({ id, tokenId, caller }) =>
        id === session || tokenId === token || (agent !== undefined && caller.agent?.id === agent),
    );
  });
  tokens.changed.listen(() => changed.emit());
  /** Ended sessions that the store still contains. */
  const ending = new Halts<string>(() => {
    revision.changed();
    changed.emit();
  });

  async function load(hash: string): Promise<Omit<CachedSession, "seen"> | undefined> {
    const seen = revision.settled;
    // The only query that names no workspace, because the secret determines it.
    const row = await db.urgent.get<SessionRow>(
      `SELECT ${SESSION_COLUMNS} FROM sessions WHERE secret_hash = $1`,
      [Buffer.from(hash, "hex")],
    );
    if (!row || !db.seals.fits("sessions", row)) return undefined;
    const caller = await tokens.callerOf(row.workspace_id, row.token_id);
    if (!caller) return undefined;
    const { id, token_id: tokenId, expires_at: expiresAt } = row;
    const grant = new Grant({ revision, clock }, (sql) => endOf(sql, row.workspace_id, id));
    grant.setExpiry(expiresAt, seen);
    return { caller: { ...caller, session: { id, expiresAt }, grant }, id, tokenId, expiresAt };
  }

  /** When a session ends; undefined if it has ended. */
  async function endOf(sql: Sql, workspaceId: number, id: string): Promise<number | undefined> {
    if (ending.has(id)) return undefined;
    const row = await sql.get<Pick<ListedSessionRow, "expires_at">>(
      `SELECT s.expires_at ${OPEN} AND s.id = $3`,
      [workspaceId, clock.now(), id],
    );
    return row?.expires_at;
  }

  function use({ caller, id, tokenId, expiresAt }: Omit<CachedSession, "seen">): Caller | undefined {
    const now = clock.now();
    if (now >= expiresAt || ending.has(id)) return undefined;
    const { workspaceId } = caller;
    used.set(id, { workspaceId, at: now });
    tokens.countUse(workspaceId, tokenId);
    return caller;
  }

  async function loadAndUse(hash: string): Promise<Caller | undefined> {
    const before = revision.settled;
    const entry = await load(hash);
    if (!entry) return undefined;
    // Data read before a change is not cached after it.
    if (before !== null && revision.settled === before) known.add(hash, { ...entry, seen: before });
    return use(entry);
  }

  function fromRow(row: ListedSessionRow): Session {
    return {
      id: row.id,
      tokenId: row.token_id,
      name: row.name,
      agent: row.agent,
      person: row.person,
      userAgent: row.user_agent,
      createdAt: row.created_at,
      lastUsedAt: used.get(row.id)?.at ?? row.last_used_at,
      expiresAt: row.expires_at,
    };
  }

  return {
    changed,

    authenticate(secret) {
      const hash = hashSecretHex(secret);
      const entry = known.get(hash);
      return entry && entry.seen === revision.settled ? use(entry) : loadAndUse(hash);
    },

    lastKnown(secret) {
      const entry = known.get(hashSecretHex(secret));
      return entry && use(entry);
    },

    async open(tx, { workspaceId, tokenId, secretHash, userAgent }) {
      const until = await tokens.validUntil(tx, workspaceId, tokenId, secretHash);
      if (until === undefined) return undefined;
      const id = ids("ses");
      const secret = createSecret(random, SESSION_PREFIX);
      const now = clock.now();
      const expiresAt = Math.min(now + lifetimeMs, until);
      const ended = await tx.all<Pick<SessionRow, "id">>(
        `DELETE FROM sessions WHERE workspace_id = $1 AND token_id = $2 AND id NOT IN (
           SELECT id FROM sessions WHERE workspace_id = $1 AND token_id = $2 ORDER BY id DESC LIMIT $3) RETURNING id`,
        [workspaceId, tokenId, PER_TOKEN - 1],
      );
      for (const { id: session } of ended) tokens.changeWith(tx, { session });
      const row = {
        id,
        workspace_id: workspaceId,
        token_id: tokenId,
        secret_hash: hashSecret(secret),
        created_at: now,
        expires_at: expiresAt,
      };
      const seal = tx.seals.of("sessions", row);
      tx.write(
        `INSERT INTO sessions (id, workspace_id, token_id, secret_hash, user_agent, created_at, expires_at, seal)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
        [id, workspaceId, tokenId, row.secret_hash, shortened(userAgent), now, expiresAt, seal],
      );
      return { id, secret, expiresAt };
    },

    async list(workspaceId, limit, before, agentId) {
      const own = agentId === undefined ? "" : " AND t.agent_id = $5";
      const rows = await db.all<ListedSessionRow>(
        `${SELECT} AND s.id < $3${own} ORDER BY s.id DESC LIMIT $4`,
        [
          workspaceId,
          clock.now(),
          before ?? "ses~",
          // Up to this many are filtered out below.
          limit + 1 + ending.size,
          ...(agentId === undefined ? [] : [agentId]),
        ],
      );
      return rows.filter(({ id }) => !ending.has(id)).map(fromRow);
    },

    async get(workspaceId, id) {
      const row =
        isId("ses", id) && !ending.has(id)
          ? await db.urgent.get<ListedSessionRow>(`${SELECT} AND s.id = $3`, [workspaceId, clock.now(), id])
          : undefined;
      if (!row) throw new Problem("not_found", `There is no session ${JSON.stringify(id)}.`);
      return fromRow(row);
    },

    async end(tx, workspaceId, id) {
      const ended = await tx.run("DELETE FROM sessions WHERE workspace_id = $1 AND id = $2", [
        workspaceId,
        id,
      ]);
      if (ended > 0) tokens.changeWith(tx, { session: id });
    },

    halt: (id) => ending.halt(id),

    async keepHouse() {
      await saveLastUses(db, "sessions", used);
      // For all workspaces: only age matters.
      await db.run(
        "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= $1 LIMIT $2)",
        [clock.now(), PURGE_LIMIT],
      );
    },
  };
}

/** A User-Agent is untrusted text: secrets are masked, and it is cut to what identifies a browser. */
function shortened(userAgent: string | null): string | null {
  return userAgent === null || userAgent === "" ? null : redact(userAgent).slice(0, USER_AGENT_LENGTH);
}
