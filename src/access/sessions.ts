import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { type Ids, isId, type RandomSource } from "../base/ids.ts";
import { redact } from "../base/log.ts";
import { Signal } from "../base/signal.ts";
import type { Db, Sql, Tx } from "../store/db.ts";
import type { Caller } from "./caller.ts";
import { Grant } from "./grant.ts";
import { type Halt, Halts } from "./halts.ts";
import { createSecret, hashSecret, hashSecretHex, SESSION_PREFIX } from "./secret.ts";
import { SESSION_COLUMNS, type SessionRow } from "./session-rows.ts";
import type { Tokens } from "./tokens.ts";

/**
 * A browser that is signed in, without its secret, which is in the browser's cookie alone. It belongs to the token that signed in,
 * and may do what that token may do now: nothing of the token is kept with it, and it ends with the token.
 */
export interface Session {
  readonly id: string;
  readonly tokenId: string;
  /** The token's name. */
  readonly name: string;
  /** The agent that the token acts as. */
  readonly agent: string | null;
  readonly person: string | null;
  /** As the browser named itself, cut to 200 characters. */
  readonly userAgent: string | null;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly expiresAt: number;
}

export interface SignIn {
  readonly workspaceId: number;
  readonly tokenId: string;
  /** Of the token's secret that was shown, or that a link stands for: the session does not outlive it. */
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
   * The caller behind a session's secret, or undefined: unknown, expired and ended look alike. At once for a secret that was
   * seen before. It counts as a use of the token.
   */
  authenticate(secret: string): Caller | undefined | Promise<Caller | undefined>;
  /**
   * Opens a session, which lives as long as the setting says and no longer than its token; undefined where the token is not
   * good any more. Of more than 100 sessions of a token the oldest end.
   */
  open(tx: Tx, signIn: SignIn): Promise<OpenedSession | undefined>;
  /** Newest first, before the id `before`; more than `limit` when there are more. With `agentId`, that agent's alone. */
  list(workspaceId: number, limit: number, before: string | undefined, agentId?: number): Promise<Session[]>;
  /** @throws Problem 404 `not_found` */
  get(workspaceId: number, id: string): Promise<Session>;
  /** Ends a session for good; one that has ended already stays so. */
  end(tx: Tx, workspaceId: number, id: string): Promise<void>;
  /**
   * Takes a session for ended from this moment on, before that is written and where it cannot be. Whoever calls this has it
   * written (`end`), and lifts it then.
   */
  halt(id: string): Halt;
  /** Emits when sessions that were open may be so no more. */
  readonly changed: Signal<void>;
  /** Writes when sessions were last used, and deletes some that have expired; called now and then and at the end. */
  keepHouse(): Promise<void>;
}

export interface SessionParts {
  readonly db: Db;
  readonly tokens: Pick<Tokens, "callerOf" | "goodUntil" | "countUse" | "changed" | "revision">;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: RandomSource;
  readonly lifetimeMs: number;
}

interface Row {
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

/** Those that are open: not expired, and their token not either (which ends them no later), nor its agent archived. */
const OPEN = `FROM sessions s JOIN tokens t ON t.id = s.token_id LEFT JOIN agents a ON a.id = t.agent_id
  WHERE s.workspace_id = $1 AND s.expires_at > $2 AND t.revoked_at IS NULL AND a.archived_at IS NULL`;
const SELECT = `SELECT s.id, s.token_id, t.name, a.name AS agent, t.person, s.user_agent, s.created_at, s.last_used_at,
  s.expires_at ${OPEN}`;

/** Sessions remembered, so that a call costs a hash and no query. */
const CACHE_LIMIT = 10_000;
/** Of one token: whoever signs in by a program, again and again, fills no table. */
const PER_TOKEN = 100;
const USER_AGENT_LENGTH = 200;
const PURGE_LIMIT = 1_000;

interface Known {
  readonly caller: Caller;
  readonly id: string;
  readonly tokenId: string;
  readonly expiresAt: number;
}

interface LastUse {
  readonly workspaceId: number;
  readonly at: number;
}

export function createSessions(parts: SessionParts): Sessions {
  const { db, tokens, clock, ids, random, lifetimeMs } = parts;
  const known = new Map<string, Known>();
  const used = new Map<string, LastUse>();
  const changed = new Signal<void>();
  const { revision } = tokens;

  function forget(): void {
    known.clear();
    changed.emit();
  }

  /** Some were deleted by this transaction. */
  function hasEnded(tx: Tx): void {
    revision.change(tx);
    tx.onCommit(forget);
  }

  tokens.changed.listen(forget);
  /** Sessions that have ended, of which the store does not know yet. */
  const ending = new Halts<string>(() => {
    revision.changed();
    forget();
  });

  async function load(hash: string): Promise<Known | undefined> {
    const seen = revision.settled;
    // The one query that names no workspace: which it is, is what the secret says.
    const row = await db.get<SessionRow>(`SELECT ${SESSION_COLUMNS} FROM sessions WHERE secret_hash = $1`, [
      Buffer.from(hash, "hex"),
    ]);
    if (!row || !db.seals.fits("sessions", row)) return undefined;
    const caller = await tokens.callerOf(row.workspace_id, row.token_id);
    if (!caller) return undefined;
    const { id, token_id: tokenId, expires_at: expiresAt } = row;
    const grant = new Grant({ revision, clock }, (sql) => endOf(sql, row.workspace_id, id));
    grant.know(expiresAt, seen);
    return { caller: { ...caller, session: { id, expiresAt }, grant }, id, tokenId, expiresAt };
  }

  /** When a session ends; undefined if it has ended. */
  async function endOf(sql: Sql, workspaceId: number, id: string): Promise<number | undefined> {
    if (ending.has(id)) return undefined;
    const row = await sql.get<Pick<Row, "expires_at">>(`SELECT s.expires_at ${OPEN} AND s.id = $3`, [
      workspaceId,
      clock.now(),
      id,
    ]);
    return row?.expires_at;
  }

  function use({ caller, id, tokenId, expiresAt }: Known): Caller | undefined {
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
    if (known.size >= CACHE_LIMIT) known.clear();
    // What was read before a change is not remembered after it.
    if (before !== null && revision.settled === before) known.set(hash, entry);
    return use(entry);
  }

  function fromRow(row: Row): Session {
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
      return entry ? use(entry) : loadAndUse(hash);
    },

    async open(tx, { workspaceId, tokenId, secretHash, userAgent }) {
      const until = await tokens.goodUntil(tx, workspaceId, tokenId, secretHash);
      if (until === undefined) return undefined;
      const id = ids("ses");
      const secret = createSecret(random, SESSION_PREFIX);
      const now = clock.now();
      const expiresAt = Math.min(now + lifetimeMs, until);
      const ended = await tx.run(
        `DELETE FROM sessions WHERE workspace_id = $1 AND token_id = $2 AND id NOT IN (
           SELECT id FROM sessions WHERE workspace_id = $1 AND token_id = $2 ORDER BY id DESC LIMIT $3)`,
        [workspaceId, tokenId, PER_TOKEN - 1],
      );
      if (ended > 0) hasEnded(tx);
      const row = {
        id,
        workspace_id: workspaceId,
        token_id: tokenId,
        secret_hash: hashSecret(secret),
        created_at: now,
        expires_at: expiresAt,
      };
      const seal = tx.seals.of("sessions", row);
      await tx.run(
        `INSERT INTO sessions (id, workspace_id, token_id, secret_hash, user_agent, created_at, expires_at, seal)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
        [id, workspaceId, tokenId, row.secret_hash, shortened(userAgent), now, expiresAt, seal],
      );
      return { id, secret, expiresAt };
    },

    async list(workspaceId, limit, before, agentId) {
      const own = agentId === undefined ? "" : " AND t.agent_id = $5";
      const rows = await db.all<Row>(`${SELECT} AND s.id < $3${own} ORDER BY s.id DESC LIMIT $4`, [
        workspaceId,
        clock.now(),
        before ?? "ses~",
        // So many of them may be left out below.
        limit + 1 + ending.size,
        ...(agentId === undefined ? [] : [agentId]),
      ]);
      return rows.filter(({ id }) => !ending.has(id)).map(fromRow);
    },

    async get(workspaceId, id) {
      const row =
        isId("ses", id) && !ending.has(id)
          ? await db.get<Row>(`${SELECT} AND s.id = $3`, [workspaceId, clock.now(), id])
          : undefined;
      if (!row) throw new Problem("not_found", `There is no session ${JSON.stringify(id)}.`);
      return fromRow(row);
    },

    async end(tx, workspaceId, id) {
      const ended = await tx.run("DELETE FROM sessions WHERE workspace_id = $1 AND id = $2", [
        workspaceId,
        id,
      ]);
      if (ended > 0) hasEnded(tx);
    },

    halt: (id) => ending.halt(id),

    async keepHouse() {
      const batch = [...used];
      if (batch.length > 0) {
        await db.tx(async (tx) => {
          for (const [id, { workspaceId, at }] of batch) {
            await tx.run("UPDATE sessions SET last_used_at = $3 WHERE workspace_id = $1 AND id = $2", [
              workspaceId,
              id,
              at,
            ]);
          }
        });
        for (const [id, use] of batch) if (used.get(id) === use) used.delete(id);
      }
      // Of all workspaces: age is all that matters.
      await db.run(
        "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= $1 LIMIT $2)",
        [clock.now(), PURGE_LIMIT],
      );
    },
  };
}

/** What a browser says of itself is anybody's text: no secret stays in it, and no more of it than names a browser. */
function shortened(userAgent: string | null): string | null {
  return userAgent === null || userAgent === "" ? null : redact(userAgent).slice(0, USER_AGENT_LENGTH);
}
