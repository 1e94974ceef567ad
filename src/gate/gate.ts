import type { Caller } from "../access/caller.ts";
import { ADMIN_SCOPES, hasScope, type NamedScope } from "../access/scopes.ts";
import type { Sessions } from "../access/sessions.ts";
import type { SignInLinks } from "../access/sign-in-links.ts";
import type { Tokens } from "../access/tokens.ts";
import { DEFAULT_WORKSPACE, type Workspaces } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Via } from "../base/via.ts";
import type { Channel } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { LedgerChanged } from "../ledger/ledger-changed.ts";
import { type Db, StoreUnavailable } from "../store/db.ts";
import { Call } from "./call.ts";
import type { LateRecords } from "./late.ts";
import type { LimitNotices } from "./notices.ts";
import type { RefusedCallers } from "./refused.ts";
import { type RequestLimit, RequestLimiter } from "./requests.ts";
import { invalidToken, requireRights, unauthenticated } from "./rights.ts";

/** What a door offers: one of these stands beside each route. */
export interface Operation {
  /** `noun.verb`, as the ledger names it. */
  readonly action: string;
  /** Null: what it may touch is checked on its way, thing by thing. */
  readonly scope: NamedScope | "admin" | null;
  /** False for streams, which do not count against the request limit; one that is refused is no stream, and counts. */
  readonly counted: boolean;
  /** Counted like another, but never refused for it: what stops work MUST get through while a flood has taken the limit. */
  readonly urgent?: boolean;
}

/** How the caller says who it is. */
export type Credential =
  | { readonly kind: "none" | "malformed" }
  | { readonly kind: "bearer"; readonly secret: string }
  /** A browser that is signed in, by its cookie. */
  | { readonly kind: "session"; readonly secret: string }
  /** A browser that is about to be: good for signing in alone, and used up there. */
  | { readonly kind: "link"; readonly secret: string }
  /** A page of another origin, with what may be somebody's cookie. */
  | { readonly kind: "foreign_page" }
  /** The command line on this machine, which reads the data directory anyway. */
  | { readonly kind: "operator"; readonly user: string; readonly workspace: string };

export interface Origin {
  readonly requestId: string;
  readonly channel: Channel;
  readonly credential: Credential;
  /** The peer's address, to tell floods apart. */
  readonly source: string;
  /** The Gatehouses that the request has passed before. */
  readonly via?: Via;
}

export type Answer<T> = (
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: Problem }
) & {
  readonly ledgerSeq: number | null;
  readonly limit: RequestLimit | null;
};

/** How the first two steps of a call end where it may not go on. */
export type Refused = Extract<Answer<never>, { readonly ok: false }>;

export interface Gate {
  /**
   * The one way of every call: authenticate, limit, check the scope, do, record, answer. It never
   * throws. Each transaction of the call checks again that the caller may still act (`Call`). No call succeeds before its entry is on
   * disk: if it can't be written, the answer is 503 `ledger_unavailable`. A stop, a cancel and the end of a session alone hold from the moment at which they are decided:
   * where their entry can't be written, they succeed without one, and it is written late.
   */
  call<T>(operation: Operation, origin: Origin, handle: (call: Call) => Promise<T>): Promise<Answer<T>>;
  /**
   * The way of `call` in three steps, for a door whose requests hold several calls, or none: who asks, whether the
   * workspace's limit allows so many calls, and each of them. None of them throws.
   */
  identify(origin: Origin): Identified | Promise<Identified>;
  count(origin: Origin, caller: Caller, calls: number): Promise<Counted>;
  /**
   * Asks again whether a caller may act, after something was waited for. Undefined if that is known at once. `perform` asks by itself.
   * @throws Problem 401 `invalid_token`
   */
  confirm(caller: Caller): Promise<void> | undefined;
  /** When a caller's rights end, in milliseconds since the Unix epoch; infinite without an end. The time may have passed. */
  rightsEnd(caller: Caller): number | Promise<number>;
  /** Requests that a workspace may still make at once. */
  requestsLeft(workspaceId: number): number;
  /** Refuses a call before it is asked who makes it; recorded as those of nobody knows whom are. */
  turnAway(origin: Origin, problem: Problem): Promise<Refused>;
  perform<T>(
    operation: Operation,
    origin: Origin,
    admitted: { readonly caller: Caller; readonly limit: RequestLimit | null },
    handle: (call: Call) => Promise<T>,
  ): Promise<Answer<T>>;
}

export type Identified = { readonly ok: true; readonly caller: Caller } | Refused;
export type Counted = { readonly ok: true; readonly limit: RequestLimit | null } | Refused;

export interface GateParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly tokens: Tokens;
  readonly sessions: Pick<Sessions, "authenticate">;
  readonly links: Pick<SignInLinks, "find">;
  readonly workspaces: Workspaces;
  readonly notices: LimitNotices;
  readonly refused: RefusedCallers;
  readonly late: LateRecords;
  readonly clock: Clock;
  readonly log: Log;
}

export function createGate(parts: GateParts): Gate {
  const { db, ledger, tokens, sessions, links, workspaces, notices, refused, late, clock, log } = parts;
  const limiter = new RequestLimiter();

  /** The way of every call awaits nothing that is there already: each needless hop of a busy server costs it 1 µs. */
  function authenticate(credential: Credential): Caller | undefined | Promise<Caller | undefined> {
    switch (credential.kind) {
      case "bearer":
        return tokens.authenticate(credential.secret);
      case "session":
        return sessions.authenticate(credential.secret);
      case "link": {
        const linked = links.find(credential.secret);
        return linked && tokens.callerOf(linked.workspaceId, linked.tokenId);
      }
      case "operator": {
        const workspace = workspaces.find(credential.workspace);
        if (!workspace)
          throw new Problem("not_found", `There is no workspace named ${credential.workspace}.`);
        return {
          workspaceId: workspace.id,
          workspace: workspace.name,
          actor: `user:${credential.user}`,
          name: credential.user,
          agent: null,
          scopes: ADMIN_SCOPES,
          toolsMode: "all",
          person: credential.user,
          role: null,
        };
      }
      case "foreign_page":
        throw new Problem(
          "origin_forbidden",
          "A page of another origin may not act here. If it is this server's own page, set public_url to its address.",
        );
      case "malformed":
        throw unauthenticated("unauthenticated", "The Authorization header must be: Bearer <token>.");
      case "none":
        throw unauthenticated("unauthenticated", "Send the header Authorization: Bearer <token>.");
    }
  }

  function takeLimit(caller: Caller): RequestLimit {
    return limiter.take(workspaces.get(caller.workspaceId), clock.monotonic());
  }

  /**
   * Whether a call takes from its workspace's limit. The operator's own do not: a folder of documents that is added on the
   * command line would leave nothing to those who work with the server.
   */
  function isLimited({ credential }: Origin): boolean {
    return credential.kind !== "operator";
  }

  /** Tells of a limit that was passed, and says whether the call is refused for it. */
  async function refuses(operation: Pick<Operation, "urgent">, caller: Caller): Promise<boolean> {
    const workspace = workspaces.get(caller.workspaceId);
    const isUrgent = operation.urgent === true;
    try {
      await notices.exceeded(workspace, "requests");
    } catch (error) {
      if (!isUrgent || !(error instanceof StoreUnavailable)) throw error;
      log.error("a limit notice cannot be written", { workspace: workspace.name, error });
    }
    return !isUrgent && workspace.limits.enforcement === "enforced";
  }

  function identify(origin: Origin): Identified | Promise<Identified> {
    try {
      const found = authenticate(origin.credential);
      return found instanceof Promise
        ? found.then(
            (caller) => known(caller, origin),
            (error) => refuse(error, origin),
          )
        : known(found, origin);
    } catch (error) {
      return refuse(error, origin);
    }
  }

  function known(caller: Caller | undefined, origin: Origin): Identified | Promise<Refused> {
    if (caller) return { ok: true, caller };
    return refuse(invalidToken(), origin);
  }

  /** Of nobody knows whom. */
  async function refuse(error: unknown, origin: Origin): Promise<Refused> {
    let problem = toProblem(error, origin, log);
    let ledgerSeq: number | null = null;
    try {
      const workspace = workspaces.find(DEFAULT_WORKSPACE);
      if (workspace) ledgerSeq = await refused.note(workspace.id, origin, problem.code);
    } catch (unrecorded) {
      problem = toProblem(unrecorded, origin, log);
    }
    return { ok: false, problem, ledgerSeq, limit: null };
  }

  /** Not an entry each: the minute's `limit.exceeded` stands for them, or a flood would fill the disk. Never throws. */
  async function overLimit(
    origin: Origin,
    operation: Pick<Operation, "urgent">,
    caller: Caller,
    limit: RequestLimit,
  ): Promise<Refused | null> {
    try {
      if (!limit.exceeded || !(await refuses(operation, caller))) return null;
      return { ok: false, problem: rateLimited(limit), ledgerSeq: null, limit };
    } catch (error) {
      return { ok: false, problem: toProblem(error, origin, log), ledgerSeq: null, limit };
    }
  }

  async function perform<T>(
    operation: Operation,
    origin: Origin,
    admitted: { readonly caller: Caller; readonly limit: RequestLimit | null },
    handle: (call: Call) => Promise<T>,
  ): Promise<Answer<T>> {
    const { caller } = admitted;
    let { limit } = admitted;
    const { requestId, channel, via } = origin;
    const call = new Call({ caller, requestId, channel, via, action: operation.action }, db, ledger, late);
    try {
      // It may have been identified long ago: a request of several calls was read since.
      const asked = call.requireRights();
      if (asked) await asked;
      if (operation.scope !== null && !hasScope(caller.scopes, operation.scope)) {
        throw new Problem("scope_missing", `This needs a token with the scope ${operation.scope}.`);
      }
      const value = await handle(call);
      if (call.ledgerSeq === null && !call.isPutOff) await call.record("succeeded");
      return { ok: true, value, ledgerSeq: call.ledgerSeq, limit };
    } catch (error) {
      let problem = toProblem(error, origin, log);
      let { ledgerSeq } = call;
      if (!problem.isRecorded) return { ok: false, problem, ledgerSeq, limit };
      try {
        // A changed ledger can still be appended to, and it records the call that could not be answered.
        const isWritable = problem.code !== "ledger_unavailable" || error instanceof LedgerChanged;
        if (ledgerSeq === null && isWritable) {
          if (!operation.counted && isLimited(origin)) {
            limit = takeLimit(caller);
            const over = await overLimit(origin, operation, caller, limit);
            if (over) return over;
          }
          await call.record(outcomeOf(problem), problem.code);
          ledgerSeq = call.ledgerSeq;
        }
      } catch (unrecorded) {
        problem = toProblem(unrecorded, origin, log);
      }
      return { ok: false, problem, ledgerSeq, limit };
    }
  }

  return {
    async call(operation, origin, handle) {
      const found = identify(origin);
      const identified = found instanceof Promise ? await found : found;
      if (!identified.ok) return identified;
      const { caller } = identified;
      if (!operation.counted || !isLimited(origin)) {
        return perform(operation, origin, { caller, limit: null }, handle);
      }
      const limit = takeLimit(caller);
      if (limit.exceeded) {
        const over = await overLimit(origin, operation, caller, limit);
        if (over) return over;
      }
      return perform(operation, origin, { caller, limit }, handle);
    },
    identify,
    requestsLeft: (workspaceId) => limiter.left(workspaces.get(workspaceId), clock.monotonic()),
    turnAway: (origin, problem) => refuse(problem, origin),
    confirm: (caller) => requireRights(caller, db),
    rightsEnd: ({ grant }) => grant?.endsAt(db) ?? Number.POSITIVE_INFINITY,
    async count(origin, caller, calls) {
      let limit: RequestLimit | null = null;
      if (!isLimited(origin)) return { ok: true, limit };
      for (let counted = 0; counted < calls; counted++) {
        limit = takeLimit(caller);
        const over = await overLimit(origin, {}, caller, limit);
        if (over) return over;
      }
      return { ok: true, limit };
    },
    perform,
  };
}

function rateLimited(limit: RequestLimit): Problem {
  return new Problem("rate_limited", `The workspace may make ${limit.quota} requests a minute.`, {
    headers: { "Retry-After": String(limit.retrySeconds) },
  });
}

/** How a call that was not made ends in the ledger. A client that left before it had asked was refused nothing. */
function outcomeOf({ code, status }: Problem): "cancelled" | "failed" | "denied" {
  if (code === "client_closed") return "cancelled";
  return status >= 500 ? "failed" : "denied";
}

/** What may be shown of a failure. The rest goes to the log, where the request id finds it. */
function toProblem(error: unknown, origin: Origin, log: Log): Problem {
  if (error instanceof Problem) {
    if (error.cause !== undefined)
      log.warn(error.message, { request_id: origin.requestId, cause: error.cause });
    return error;
  }
  if (error instanceof StoreUnavailable) {
    log.error("the ledger cannot be written", { request_id: origin.requestId, error });
    return new Problem("ledger_unavailable", "The evidence ledger cannot be written; nothing was done.", {
      headers: { "Retry-After": "5" },
    });
  }
  if (error instanceof LedgerChanged) {
    log.error("the stored ledger is not the one that was signed", { request_id: origin.requestId, error });
    return new Problem(
      "ledger_unavailable",
      "The stored ledger is not the one that was signed. Run `gatehouse ledger verify` on the server to see what was changed.",
    );
  }
  log.error("a call failed", { request_id: origin.requestId, error });
  return new Problem("internal", "Something went wrong here. The request id finds it in the server's log.");
}
