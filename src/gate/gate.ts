import type { Caller } from "../access/caller.ts";
import { ADMIN_SCOPES, hasScope, type NamedScope } from "../access/scopes.ts";
import type { Tokens } from "../access/tokens.ts";
import { DEFAULT_WORKSPACE, type Workspaces } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Channel } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { type Db, StoreUnavailable } from "../store/db.ts";
import { Call } from "./call.ts";
import type { LimitNotices } from "./notices.ts";
import type { RefusedCallers } from "./refused.ts";
import { type RequestLimit, RequestLimiter } from "./requests.ts";

/** What a door offers: one of these stands beside each route. */
export interface Operation {
  /** `noun.verb`, as the ledger names it. */
  readonly action: string;
  readonly scope: NamedScope | "admin";
  /** False for streams, which do not count against the request limit; one that is refused is no stream, and counts. */
  readonly counted: boolean;
  /** Counted like another, but never refused for it: what stops work MUST get through while a flood has taken the limit. */
  readonly urgent?: boolean;
}

/** How the caller says who it is. */
export type Credential =
  | { readonly kind: "none" | "malformed" }
  | { readonly kind: "bearer"; readonly secret: string }
  /** The command line on this machine, which reads the data directory anyway. */
  | { readonly kind: "operator"; readonly user: string; readonly workspace: string };

export interface Origin {
  readonly requestId: string;
  readonly channel: Channel;
  readonly credential: Credential;
  /** The peer's address, to tell floods apart. */
  readonly source: string;
}

export type Answer<T> = (
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: Problem }
) & {
  readonly ledgerSeq: number | null;
  readonly limit: RequestLimit | null;
};

export interface Gate {
  /**
   * The one way of every call: authenticate, limit, check the scope, do, record, answer. It never
   * throws. No call succeeds before its entry is on disk: where it can't be written, the answer is 503
   * `ledger_unavailable`.
   */
  call<T>(operation: Operation, origin: Origin, handle: (call: Call) => Promise<T>): Promise<Answer<T>>;
}

export interface GateParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly tokens: Tokens;
  readonly workspaces: Workspaces;
  readonly notices: LimitNotices;
  readonly refused: RefusedCallers;
  readonly clock: Clock;
  readonly log: Log;
}

export function createGate(parts: GateParts): Gate {
  const { db, ledger, tokens, workspaces, notices, refused, clock, log } = parts;
  const limiter = new RequestLimiter();

  /** The way of every call awaits nothing that is there already: each needless hop of a busy server costs it 1 µs. */
  function authenticate(credential: Credential): Caller | undefined | Promise<Caller | undefined> {
    switch (credential.kind) {
      case "bearer":
        return tokens.authenticate(credential.secret);
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
          person: credential.user,
          role: null,
        };
      }
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
  async function refuses(operation: Operation, caller: Caller): Promise<boolean> {
    const workspace = workspaces.get(caller.workspaceId);
    await notices.exceeded(workspace, "requests");
    return operation.urgent !== true && workspace.limits.enforcement === "enforced";
  }

  return {
    async call(operation, origin, handle) {
      let limit: RequestLimit | null = null;
      let call: Call | null = null;
      try {
        const found = authenticate(origin.credential);
        const caller = found instanceof Promise ? await found : found;
        if (!caller) throw unauthenticated("invalid_token", "The token is unknown, expired or revoked.");
        const { requestId, channel } = origin;
        call = new Call({ caller, requestId, channel, action: operation.action }, db, ledger);
        if (operation.counted && isLimited(origin)) {
          limit = takeLimit(caller);
          // Not an entry each: the minute's `limit.exceeded` stands for them, or a flood would fill the disk.
          if (limit.exceeded && (await refuses(operation, caller))) {
            return { ok: false, problem: rateLimited(limit), ledgerSeq: null, limit };
          }
        }
        if (!hasScope(caller.scopes, operation.scope)) {
          throw new Problem("scope_missing", `This needs a token with the scope ${operation.scope}.`);
        }
        const value = await handle(call);
        if (call.ledgerSeq === null) await call.record("succeeded");
        return { ok: true, value, ledgerSeq: call.ledgerSeq, limit };
      } catch (error) {
        let problem = toProblem(error, origin, log);
        let ledgerSeq = call?.ledgerSeq ?? null;
        try {
          if (call === null) {
            const workspace = workspaces.find(DEFAULT_WORKSPACE);
            if (workspace) ledgerSeq = await refused.note(workspace.id, origin, problem.code);
          } else if (ledgerSeq === null && problem.code !== "ledger_unavailable") {
            if (!operation.counted && isLimited(origin)) {
              limit = takeLimit(call.caller);
              if (limit.exceeded && (await refuses(operation, call.caller))) {
                return { ok: false, problem: rateLimited(limit), ledgerSeq: null, limit };
              }
            }
            await call.record(problem.status >= 500 ? "failed" : "denied", problem.code);
            ledgerSeq = call.ledgerSeq;
          }
        } catch (unrecorded) {
          problem = toProblem(unrecorded, origin, log);
        }
        return { ok: false, problem, ledgerSeq, limit };
      }
    },
  };
}

function unauthenticated(code: "unauthenticated" | "invalid_token", detail: string): Problem {
  return new Problem(code, detail, { headers: { "WWW-Authenticate": "Bearer" } });
}

function rateLimited(limit: RequestLimit): Problem {
  return new Problem("rate_limited", `The workspace may make ${limit.quota} requests a minute.`, {
    headers: { "Retry-After": String(limit.retrySeconds) },
  });
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
  log.error("a call failed", { request_id: origin.requestId, error });
  return new Problem("internal", "Something went wrong here. The request id finds it in the server's log.");
}
