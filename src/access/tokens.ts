import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { type Ids, isId, type RandomSource } from "../base/ids.ts";
import { Signal } from "../base/signal.ts";
import type { Bus } from "../nodes/bus.ts";
import { ALONE } from "../nodes/local-nodes.ts";
import { containsSql } from "../store/common-sql.ts";
import type { Db, Sql, Tx } from "../store/db.ts";
import type { Caller, ToolsMode } from "./caller.ts";
import { CallerCache } from "./caller-cache.ts";
import { Grant, RightsRevision } from "./grant.ts";
import {
  type EndedRights,
  listenToRights,
  listenToTokenChanges,
  sendRights,
  sendTokenChange,
  type TokenChange,
} from "./messages.ts";
import { createSecret, hashSecret, hashSecretHex } from "./secret.ts";
import { shortenSessions } from "./session-rows.ts";
import {
  callerFrom,
  expiryOf,
  insertToken,
  type LastUse,
  SELECT_TOKEN,
  saveLastUses,
  secretEnd,
  type TokenRow,
  tokenEnd,
  tokenFrom,
} from "./token-rows.ts";

/** A token without its secret, which is shown once and never stored. */
export interface Token {
  readonly id: string;
  readonly name: string;
  readonly agent: string | null;
  /** The agent's id, which is never reused. */
  readonly agentId: number | null;
  readonly scopes: readonly string[];
  readonly toolsMode: ToolsMode;
  readonly person: string | null;
  readonly role: string | null;
  readonly expiresAt: number | null;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
}

export interface TokenRequest {
  readonly name: string;
  readonly agent: { readonly id: number; readonly name: string } | null;
  readonly scopes: readonly string[];
  /** Default `all`. */
  readonly toolsMode?: ToolsMode | undefined;
  readonly person: string | null;
  readonly role: string | null;
  /** Milliseconds from now. Null: never. */
  readonly expiresIn: number | null;
  /**
   * The latest possible end, in milliseconds since the Unix epoch: a token does not outlive the token that issued it.
   */
  readonly notAfter?: number;
}

export interface Tokens {
  /**
   * The caller that a secret belongs to. Undefined if the secret is unknown, expired or revoked; these cases are not
   * distinguished. Synchronous for a secret seen before.
   */
  authenticate(secret: string): Caller | undefined | Promise<Caller | undefined>;
  /**
   * The caller that the secret belonged to when it was last read, for a stop while the store cannot be read. Undefined if
   * it is known to have ended, or has not been read yet.
   */
  lastKnown(secret: string): Caller | undefined;
  /**
   * The caller that a token currently authenticates, for work that it requested earlier. Undefined if the token is
   * unknown, expired or revoked, or its agent is archived. Does not count as a use.
   */
  callerOf(workspaceId: number, id: string): Promise<Caller | undefined>;
  /**
   * When the secret of a token with this hash stops being valid, as `sql` sees it. Infinite if it does not expire,
   * undefined if it is not valid now.
   */
  validUntil(sql: Sql, workspaceId: number, id: string, secretHash: Uint8Array): Promise<number | undefined>;
  /**
   * Whether a token may act, whichever of its secrets is used. For work that outlives its request. One grant per token.
   */
  grantOf(workspaceId: number, id: string): Grant;
  /** Counts a use of the token by one of its sessions. */
  countUse(workspaceId: number, id: string): void;
  /**
   * The newest valid token that has `admin`, does not act as an agent and does not name a person, so its decisions
   * are attributed to nobody else. With the hash of its current secret.
   */
  newestAdmin(workspaceId: number): Promise<SignInToken | undefined>;
  /** Issues a token. If `secret` is given, it becomes the token's secret (for the operator's own first token). */
  issue(
    tx: Tx,
    workspaceId: number,
    createdBy: string,
    request: TokenRequest,
    secret?: string,
  ): Promise<IssuedTokenSecret>;
  /**
   * Newest first, before the id `before`. Returns one more than `limit` if there are more. With `agentId`, only
   * tokens of that agent.
   */
  list(workspaceId: number, limit: number, before: string | undefined, agentId?: number): Promise<Token[]>;
  /** @throws Problem 404 `not_found` */
  get(workspaceId: number, id: string, sql?: Sql): Promise<Token>;
  /**
   * Replaces the secret. The old one and existing sessions stay valid for `graceMs`. @throws Problem 404 `not_found`
   */
  rotate(tx: Tx, workspaceId: number, id: string, graceMs: number): Promise<RotatedToken>;
  /** Revokes the token and ends its sessions. @throws Problem 404 `not_found` */
  revoke(tx: Tx, workspaceId: number, id: string): Promise<void>;
  /** Emits when valid secrets may have become invalid, on whatever node. */
  readonly changed: Signal<void>;
  /** Emits what has ended, on whatever node, just before `changed`. */
  readonly ended: Signal<EndedRights>;
  /** Emits after a token is issued, rotated or revoked, with the id of the agent that it acts as. */
  readonly tokenChanged: Signal<TokenChange>;
  /** Counts the changes that may have ended a caller's rights. */
  readonly revision: RightsRevision;
  /** Announces that this transaction ends what authorises callers: a token or its secret, its agent, or a session. */
  changeWith(tx: Tx, ended: EndedRights): void;
  /** Saves when tokens were last used. Called regularly and at shutdown. */
  saveLastUsed(): Promise<void>;
}

export interface SignInToken {
  readonly id: string;
  readonly secretHash: Uint8Array;
}

export interface IssuedTokenSecret {
  readonly token: Token;
  readonly secret: string;
}

export interface RotatedToken extends IssuedTokenSecret {
  /** Number of times the token has been rotated. The call's entry MUST contain it: see `gate/ledger-history.ts`. */
  readonly rotations: number;
}

interface CachedToken {
  readonly caller: Caller & { readonly grant: Grant };
  /** `RightsRevision.settled` from before it was read. */
  readonly seen: number;
  readonly tokenId: string;
  /** When the secret stops working: at its token's expiry, or at the end of a rotated secret's grace period. */
  readonly until: number;
}

/** Maximum number of cached grants. */
const GRANT_LIMIT = 10_000;

/** @param firstRotations the number of rotations in a workspace's new rows: see `gate/token-renewal.ts` */
export function createTokens(
  db: Db,
  clock: Clock,
  ids: Ids,
  random: RandomSource,
  firstRotations: (tx: Tx, workspaceId: number) => number | Promise<number> = () => 0,
  bus: Bus = ALONE.bus,
): Tokens {
  const known = new CallerCache<CachedToken>();
  const used = new Map<string, LastUse>();
  const changed = new Signal<void>();
  const ended = new Signal<EndedRights>();
  const tokenChanged = new Signal<TokenChange>();
  const revision = new RightsRevision(bus);
  const grants = new Map<string, Grant>();

  function haveEnded(what: EndedRights): void {
    known.remove(
      ({ tokenId, caller }) =>
        tokenId === what.token || (what.agent !== undefined && caller.agent?.id === what.agent),
    );
    ended.emit(what);
    changed.emit();
  }

  function changeWith(tx: Tx, what: EndedRights): void {
    revision.change(tx);
    tx.onCommit(() => {
      haveEnded(what);
      sendRights(bus, what);
    });
  }

  listenToRights(bus, (what) => {
    revision.changed();
    haveEnded(what);
  });

  /** Reports a token that was issued, rotated or revoked, once that is on disk. */
  function tellOf(tx: Tx, workspaceId: number, agentId: number | null): void {
    tx.onCommit(() => {
      tokenChanged.emit({ workspaceId, agentId });
      sendTokenChange(bus, { workspaceId, agentId });
    });
  }

  listenToTokenChanges(bus, (change) => tokenChanged.emit(change));

  function grantOf(workspaceId: number, id: string): Grant {
    const before = grants.get(id);
    if (before) return before;
    const grant = new Grant({ revision, clock }, (sql) => tokenEnd(sql, workspaceId, id));
    if (grants.size >= GRANT_LIMIT) grants.clear();
    grants.set(id, grant);
    return grant;
  }

  async function load(
    hash: Buffer,
    grantBefore: Grant | undefined,
  ): Promise<Omit<CachedToken, "seen"> | undefined> {
    const seen = revision.settled;
    const row = await db.urgent.get<TokenRow & { until: number | null }>(
      `${SELECT_TOKEN.replace(" FROM", ", CASE WHEN t.secret_hash = $1 THEN NULL ELSE t.previous_until END AS until FROM")}
       WHERE (t.secret_hash = $1 OR t.previous_hash = $1) AND t.revoked_at IS NULL`,
      [hash],
    );
    const caller = row && callerFrom(db.seals, row);
    if (!caller) return undefined;
    const until = Math.min(row.expires_at ?? Number.POSITIVE_INFINITY, row.until ?? Number.POSITIVE_INFINITY);
    const { workspace_id: workspaceId, id } = row;
    const look = (sql: Sql) => secretEnd(sql, workspaceId, id, hash);
    const grant = grantBefore ?? new Grant({ revision, clock }, look);
    grant.setExpiry(until, seen);
    return { caller: { ...caller, grant }, tokenId: id, until };
  }

  function use(entry: Omit<CachedToken, "seen">): Caller | undefined {
    const now = clock.now();
    if (now >= entry.until) return undefined;
    used.set(entry.tokenId, { workspaceId: entry.caller.workspaceId, at: now });
    return entry.caller;
  }

  async function loadAndUse(hash: string): Promise<Caller | undefined> {
    const before = revision.settled;
    const entry = await load(Buffer.from(hash, "hex"), known.get(hash)?.caller.grant);
    if (!entry) return undefined;
    // Data read before a change is not cached after it.
    if (before !== null && revision.settled === before) known.add(hash, { ...entry, seen: before });
    return use(entry);
  }

  async function get(workspaceId: number, id: string, sql: Sql = db.urgent): Promise<Token> {
    const row = isId("tok", id)
      ? await sql.get<TokenRow>(
          `${SELECT_TOKEN} WHERE t.workspace_id = $1 AND t.id = $2 AND t.revoked_at IS NULL`,
          [workspaceId, id],
        )
      : undefined;
    if (!row) throw noToken(id);
    return tokenFrom(row, used);
  }

  return {
    changed,
    ended,
    tokenChanged,
    revision,
    changeWith,
    get,
    grantOf,

    authenticate(secret) {
      const hash = hashSecretHex(secret);
      const entry = known.get(hash);
      return entry && entry.seen === revision.settled ? use(entry) : loadAndUse(hash);
    },

    lastKnown(secret) {
      const entry = known.get(hashSecretHex(secret));
      return entry && use(entry);
    },

    async callerOf(workspaceId, id) {
      const row = await db.urgent.get<TokenRow>(
        `${SELECT_TOKEN} WHERE t.workspace_id = $1 AND t.id = $2 AND t.revoked_at IS NULL`,
        [workspaceId, id],
      );
      if (!row || (row.expires_at !== null && clock.now() >= row.expires_at)) return undefined;
      const caller = callerFrom(db.seals, row);
      return caller && { ...caller, grant: grantOf(workspaceId, id) };
    },

    async validUntil(sql, workspaceId, id, secretHash) {
      const until = await secretEnd(sql, workspaceId, id, secretHash);
      return until !== undefined && clock.now() < until ? until : undefined;
    },

    countUse(workspaceId, id) {
      used.set(id, { workspaceId, at: clock.now() });
    },

    async newestAdmin(workspaceId) {
      for (let before = "tok~"; ; ) {
        const row = await db.get<TokenRow>(
          `${SELECT_TOKEN} WHERE t.workspace_id = $1 AND t.revoked_at IS NULL AND t.agent_id IS NULL AND t.person IS NULL
           AND ${containsSql("t.scopes", "$2")} AND (t.expires_at IS NULL OR t.expires_at > $3) AND t.id < $4 ORDER BY t.id DESC LIMIT 1`,
          [workspaceId, '"admin"', clock.now(), before],
        );
        if (!row) return undefined;
        if (db.seals.fits("tokens", row)) return { id: row.id, secretHash: row.secret_hash };
        before = row.id;
      }
    },

    async issue(tx, workspaceId, createdBy, request, given) {
      const secret = given ?? createSecret(random);
      const now = clock.now();
      const token: Token = {
        id: ids("tok"),
        name: request.name,
        agent: request.agent?.name ?? null,
        agentId: request.agent?.id ?? null,
        scopes: request.scopes,
        toolsMode: request.toolsMode ?? "all",
        person: request.person,
        role: request.role,
        expiresAt: expiryOf(request, now),
        createdBy,
        createdAt: now,
        lastUsedAt: null,
      };
      insertToken(tx, {
        ...{ id: token.id, workspace_id: workspaceId, name: token.name, agent_id: token.agentId },
        ...{ scopes: JSON.stringify(token.scopes), tools_mode: token.toolsMode },
        ...{ person: token.person, role: token.role, secret_hash: hashSecret(secret) },
        ...{ previous_hash: null, previous_until: null, expires_at: token.expiresAt },
        ...{ created_by: createdBy, created_at: now, rotations: await firstRotations(tx, workspaceId) },
      });
      tellOf(tx, workspaceId, token.agentId);
      return { token, secret };
    },

    async list(workspaceId, limit, before, agentId) {
      const own = agentId === undefined ? "" : " AND t.agent_id = $4";
      const rows = await db.all<TokenRow>(
        `${SELECT_TOKEN} WHERE t.workspace_id = $1 AND t.id < $2 AND t.revoked_at IS NULL${own} ORDER BY t.id DESC LIMIT $3`,
        [workspaceId, before ?? "tok~", limit + 1, ...(agentId === undefined ? [] : [agentId])],
      );
      return rows.map((row) => tokenFrom(row, used));
    },

    async rotate(tx, workspaceId, id, graceMs) {
      const token = await get(workspaceId, id, tx);
      // A row that somebody else wrote MUST NOT become a valid token by getting a new secret.
      if ((await tokenEnd(tx, workspaceId, id)) === undefined) throw noToken(id);
      const secret = createSecret(random);
      const until = clock.now() + graceMs;
      changeWith(tx, { token: id });
      const row = await tx.seals.change(tx, "tokens", { id }, () =>
        tx.get<Pick<TokenRow, "agent_id" | "rotations">>(
          `UPDATE tokens SET previous_hash = secret_hash, previous_until = $4, secret_hash = $3, rotations = rotations + 1
           WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL RETURNING agent_id, rotations`,
          [workspaceId, id, hashSecret(secret), until],
        ),
      );
      if (!row) throw noToken(id);
      // Somebody with the old secret may have signed in with it.
      await shortenSessions(tx, workspaceId, id, until);
      tellOf(tx, workspaceId, row.agent_id);
      return { token, secret, rotations: row.rotations };
    },

    async revoke(tx, workspaceId, id) {
      changeWith(tx, { token: id });
      const row = await tx.get<Pick<TokenRow, "agent_id">>(
        `UPDATE tokens SET revoked_at = $3, seal = NULL WHERE workspace_id = $1 AND id = $2 AND revoked_at IS NULL
         RETURNING agent_id`,
        [workspaceId, id, clock.now()],
      );
      if (!row) throw noToken(id);
      tx.write("DELETE FROM sessions WHERE workspace_id = $1 AND token_id = $2", [workspaceId, id]);
      tellOf(tx, workspaceId, row.agent_id);
    },

    saveLastUsed: () => saveLastUses(db, "tokens", used),
  };
}

function noToken(id: string): Problem {
  return new Problem("not_found", `There is no token ${JSON.stringify(id)}.`);
}
