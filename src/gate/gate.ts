import type { Caller } from "../access/caller.ts";
import { ADMIN_SCOPES, type NamedScope } from "../access/scopes.ts";
import type { Sessions } from "../access/sessions.ts";
import type { LinkedToken, SignInLinks } from "../access/sign-in-links.ts";
import type { Tokens } from "../access/tokens.ts";
import { isCutOff } from "../access/trust.ts";
import { DEFAULT_WORKSPACE, type Workspace, type Workspaces } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import { enterTurn } from "../base/inflow.ts";
import type { Log } from "../base/log.ts";
import type { Via } from "../base/via.ts";
import type { Channel } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { LedgerChanged } from "../ledger/ledger-changed.ts";
import type { Bus } from "../nodes/bus.ts";
import { type Db, StoreUnavailable } from "../store/db.ts";
import { Call } from "./call.ts";
import type { LimitNotices } from "./notices.ts";
import { outcomeOf, rateLimited, toProblem } from "./problems.ts";
import type { RefusedCallers } from "./refused.ts";
import type { RequestLimit, RequestLimiter } from "./requests.ts";
import { invalidToken, requireRights, requireScope, unauthenticated } from "./rights.ts";
import type { LateRecords } from "./unwritten-decisions.ts";

/** A kind of call. Each route declares one. */
export interface Operation {
  /** `noun.verb`, as recorded in the ledger. */
  readonly action: string;
  /** One of several is enough. Null when each resource is checked on its own, inside the handler. */
  readonly scope: NamedScope | "admin" | readonly NamedScope[] | null;
  /**
   * False for streams, which do not count against the request limit. A stream that is refused does count. `later`: the
   * handler counts it with `Call.count`, or it is a stream.
   */
  readonly counted: boolean | "later";
  /**
   * Counted, but never refused by the limit, and waits for no turn: a call that stops work MUST succeed even if a
   * flood has used up the limit. While the store cannot be read, its caller has the rights that were last read.
   */
  readonly urgent?: boolean;
}

/** What the caller authenticates with. */
export type Credential =
  | { readonly kind: "none" | "malformed" }
  | { readonly kind: "bearer"; readonly secret: string }
  /** A signed-in browser, by its cookie. */
  | { readonly kind: "session"; readonly secret: string }
  /** A browser that is about to sign in: valid only for signing in, and only once. */
  | { readonly kind: "link"; readonly secret: string }
  /** A page from another origin, possibly with a user's cookie. */
  | { readonly kind: "foreign_page" }
  /** The command line on the same machine, which can read the data directory anyway. */
  | { readonly kind: "operator"; readonly user: string; readonly workspace: string };

export interface CallOrigin {
  readonly requestId: string;
  readonly channel: Channel;
  readonly credential: Credential;
  /** The client's address, to count refused calls by source. */
  readonly source: string;
  /** The Gatehouse instances that the request has passed through before. */
  readonly via?: Via;
}

export type CallResult<T> = (
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: Problem }
) & {
  readonly ledgerSeq: number | null;
  readonly limit: RequestLimit | null;
};

/** The result of the first two steps if the call may not continue. */
export type RefusedResult = Extract<CallResult<never>, { readonly ok: false }>;

export interface Gate {
  /**
   * Runs every call the same way: authenticate, apply the limit, check the scope, execute, record, answer. Never
   * throws. Each transaction of the call checks again that the caller still has its rights (`Call`). No call succeeds
   * before its entry is on disk: if it cannot be written, the answer is 503 `ledger_unavailable`. The only exceptions
   * are a stop, a cancel and the end of a session, which take effect when they are decided. If their entry cannot be
   * written, they succeed without it, and it is written late.
   */
  call<T>(
    operation: Operation,
    origin: CallOrigin,
    handle: (call: Call) => Promise<T>,
  ): Promise<CallResult<T>>;
  /**
   * The steps of `call` separately, for requests that contain several calls or none: authenticate the caller, count
   * the calls against the workspace's limit, and run each of them. None of them throws.
   */
  identify(origin: CallOrigin): IdentifyResult | Promise<IdentifyResult>;
  count(origin: CallOrigin, caller: Caller, calls: number): LimitResult | Promise<LimitResult>;
  /**
   * Checks a caller's rights again after waiting. Undefined if the answer is known immediately. `perform` does this
   * itself.
   * @throws Problem 401 `invalid_token`
   */
  confirm(caller: Caller): Promise<void> | undefined;
  /**
   * When a caller's rights end, in milliseconds since the Unix epoch; infinite if they do not. May be in the past.
   */
  rightsEnd(caller: Caller): number | Promise<number>;
  /** Requests that the workspace can still make right now. */
  requestsLeft(workspaceId: number): number;
  /** Refuses a call before authenticating it. Recorded like any unauthenticated call. */
  turnAway(origin: CallOrigin, problem: Problem): Promise<RefusedResult>;
  perform<T>(
    operation: Operation,
    origin: CallOrigin,
    admitted: { readonly caller: Caller; readonly limit: RequestLimit | null },
    handle: (call: Call) => Promise<T>,
  ): Promise<CallResult<T>>;
}

export type IdentifyResult = { readonly ok: true; readonly caller: Caller } | RefusedResult;
export type LimitResult = { readonly ok: true; readonly limit: RequestLimit | null } | RefusedResult;

export interface GateDependencies {
  readonly db: Db;
  readonly bus: Pick<Bus, "deafForMs">;
  readonly ledger: Ledger;
  readonly tokens: Tokens;
  readonly sessions: Pick<Sessions, "authenticate" | "lastKnown">;
  readonly links: Pick<SignInLinks, "find">;
  readonly workspaces: Workspaces;
  readonly limiter: RequestLimiter;
  readonly notices: LimitNotices;
  readonly refused: RefusedCallers;
  readonly late: LateRecords;
  readonly clock: Clock;
  readonly log: Log;
}

export function createGate(parts: GateDependencies): Gate {
  const { db, bus, ledger, tokens, sessions, links } = parts;
  const { workspaces, limiter, notices, refused, late, clock, log } = parts;

  /** Avoid needless awaits here: each costs a busy server about 1 µs per call. */
  function authenticate(credential: Credential): Caller | undefined | Promise<Caller | undefined> {
    switch (credential.kind) {
      case "bearer":
        return tokens.authenticate(credential.secret);
      case "session":
        return sessions.authenticate(credential.secret);
      case "link": {
        const linked = links.find(credential.secret);
        return linked instanceof Promise ? linked.then(linkedCaller) : linkedCaller(linked);
      }
      case "operator": {
        const { user, workspace: name } = credential;
        const workspace = workspaces.find(name);
        return workspace
          ? operator(user, workspace)
          : workspaces.findStored(name).then((stored) => {
              if (!stored) throw new Problem("not_found", `There is no workspace named ${name}.`);
              return operator(user, stored);
            });
      }
      case "foreign_page":
        throw new Problem(
          "origin_forbidden",
          "A page from another origin may not act here. If it is this server's own page, set public_url to its address.",
        );
      case "malformed":
        throw unauthenticated("unauthenticated", "The Authorization header must be: Bearer <token>.");
      case "none":
        throw unauthenticated("unauthenticated", "Send the header Authorization: Bearer <token>.");
    }
  }

  function linkedCaller(linked: LinkedToken | undefined): Promise<Caller | undefined> | undefined {
    return linked && tokens.callerOf(linked.workspaceId, linked.tokenId);
  }

  /** The caller as last read; undefined if the call cannot be authenticated without the store. */
  function lastKnown(credential: Credential): Caller | undefined {
    if (credential.kind === "bearer") return tokens.lastKnown(credential.secret);
    return credential.kind === "session" ? sessions.lastKnown(credential.secret) : undefined;
  }

  /** Counts a call: see `RequestLimiter.take`. */
  const takeLimit = ({ workspaceId }: Caller, { urgent }: Pick<Operation, "urgent"> = {}) =>
    limiter.take(workspaces.get(workspaceId), clock.monotonic(), urgent !== true);

  /**
   * Whether a call counts against its workspace's limit. The operator's calls do not: adding a folder of documents on
   * the command line would use up the limit for everyone else.
   */
  function isLimited({ credential }: CallOrigin): boolean {
    return credential.kind !== "operator";
  }

  /** Reports an exceeded limit and returns whether the call is refused. */
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

  function identify(origin: CallOrigin): IdentifyResult | Promise<IdentifyResult> {
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

  function known(caller: Caller | undefined, origin: CallOrigin): IdentifyResult | Promise<IdentifyResult> {
    if (!caller) return refuse(invalidToken(), origin);
    const result = { ok: true, caller } as const;
    const read = workspaces.freshen(caller.workspaceId);
    if (!read) return result;
    return read.then(
      () => result,
      (error) => refuse(error, origin),
    );
  }

  /** Like `identify`. While the store cannot be read, an urgent call has the caller that was last read. */
  async function identifyUrgent(origin: CallOrigin): Promise<IdentifyResult> {
    const identified = await identify(origin);
    if (identified.ok || identified.problem.code !== "ledger_unavailable") return identified;
    const caller = lastKnown(origin.credential);
    return caller ? { ok: true, caller } : identified;
  }

  /** Refuses an unauthenticated call. */
  async function refuse(error: unknown, origin: CallOrigin): Promise<RefusedResult> {
    let problem = toProblem(error, origin, log);
    let ledgerSeq: number | null = null;
    // Whoever made the call was not refused, and nothing can be recorded.
    if (error instanceof StoreUnavailable) return { ok: false, problem, ledgerSeq, limit: null };
    try {
      const workspace = workspaces.find(DEFAULT_WORKSPACE);
      if (workspace) ledgerSeq = await refused.note(workspace.id, origin, problem.code);
    } catch (unrecorded) {
      problem = toProblem(unrecorded, origin, log);
    }
    return { ok: false, problem, ledgerSeq, limit: null };
  }

  /**
   * Refused calls get no entries of their own, or a flood would fill the disk: the minute's `limit.exceeded` entry
   * covers them. Never throws.
   */
  async function overLimit(
    origin: CallOrigin,
    operation: Pick<Operation, "urgent">,
    caller: Caller,
    limit: RequestLimit,
  ): Promise<RefusedResult | null> {
    try {
      if (!limit.exceeded || !(await refuses(operation, caller))) return null;
      return { ok: false, problem: rateLimited(limit), ledgerSeq: null, limit };
    } catch (error) {
      return { ok: false, problem: toProblem(error, origin, log), ledgerSeq: null, limit };
    }
  }

  /** Counts the rest of a request's calls after one that exceeds the limit or waits, unless that one is refused. */
  async function countBeyond(
    origin: CallOrigin,
    caller: Caller,
    first: RequestLimit | Promise<RequestLimit>,
    left: number,
  ): Promise<LimitResult> {
    let limit = await first;
    for (let counted = 0; ; counted++) {
      const over = await overLimit(origin, {}, caller, limit);
      if (over) return over;
      if (counted === left) return { ok: true, limit };
      limit = await takeLimit(caller);
    }
  }

  async function perform<T>(
    operation: Operation,
    origin: CallOrigin,
    admitted: { readonly caller: Caller; readonly limit: RequestLimit | null },
    handle: (call: Call) => Promise<T>,
  ): Promise<CallResult<T>> {
    const { caller } = admitted;
    let { limit } = admitted;
    const { requestId, channel, via } = origin;
    const count = async () => {
      if (!isLimited(origin)) return;
      limit = await takeLimit(caller, operation);
      if (!limit.exceeded || !(await refuses(operation, caller))) return;
      throw rateLimited(limit, { isRecorded: false });
    };
    const { action, urgent = false } = operation;
    const from = { caller, requestId, channel, via, action, isUrgent: urgent };
    const call = new Call(from, db, ledger, late, operation.counted === "later" ? count : undefined);
    try {
      if (isCutOff(bus) && !operation.urgent) throw new StoreUnavailable("this node hears of no change");
      // One workspace's calls may take milliseconds each. A stop waits for nothing.
      const turn = operation.urgent ? undefined : enterTurn(caller.workspaceId);
      if (turn) await turn;
      // The caller may have been authenticated a while ago, before the rest of a request with several calls was read.
      const asked = call.requireRights();
      if (asked) await asked;
      requireScope(caller, operation.scope);
      const value = await handle(call);
      if (call.ledgerSeq === null && !call.isDeferred) await call.record("succeeded");
      return { ok: true, value, ledgerSeq: call.ledgerSeq, limit };
    } catch (error) {
      let problem = toProblem(error, origin, log);
      let { ledgerSeq } = call;
      if (!problem.isRecorded) return { ok: false, problem, ledgerSeq, limit };
      try {
        // A changed ledger can still be appended to, so a call that could not be answered is recorded.
        const isWritable = problem.code !== "ledger_unavailable" || error instanceof LedgerChanged;
        const isUncounted = operation.counted !== true && limit === null && isLimited(origin);
        if (isUncounted) limit = await takeLimit(caller, operation);
        if (ledgerSeq === null && isWritable) {
          const over = isUncounted && limit ? await overLimit(origin, operation, caller, limit) : null;
          if (over) return over;
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
      const found = operation.urgent ? identifyUrgent(origin) : identify(origin);
      const identified = found instanceof Promise ? await found : found;
      if (!identified.ok) return identified;
      const { caller } = identified;
      if (operation.counted !== true || !isLimited(origin)) {
        return perform(operation, origin, { caller, limit: null }, handle);
      }
      const taken = takeLimit(caller, operation);
      const limit = taken instanceof Promise ? await taken : taken;
      if (limit.exceeded) {
        const over = await overLimit(origin, operation, caller, limit);
        if (over) return over;
      }
      return perform(operation, origin, { caller, limit }, handle);
    },
    identify,
    requestsLeft: (workspaceId) => limiter.left(workspaces.get(workspaceId), clock.monotonic()),
    turnAway: (origin, problem) => refuse(problem, origin),
    confirm: (caller) => requireRights(caller, db.urgent),
    rightsEnd: ({ grant }) => grant?.endsAt(db.urgent) ?? Number.POSITIVE_INFINITY,
    count(origin, caller, calls) {
      let limit: RequestLimit | null = null;
      if (!isLimited(origin)) return { ok: true, limit };
      for (let counted = 1; counted <= calls; counted++) {
        const taken = takeLimit(caller);
        if (taken instanceof Promise || taken.exceeded) {
          return countBeyond(origin, caller, taken, calls - counted);
        }
        limit = taken;
      }
      return { ok: true, limit };
    },
    perform,
  };
}

/** The operator on this machine, who may do everything in the workspace. */
function operator(user: string, { id, name }: Workspace): Caller {
  return {
    ...{ workspaceId: id, workspace: name, actor: `user:${user}`, name: user, agent: null },
    ...{ scopes: ADMIN_SCOPES, toolsMode: "all", person: user, role: null },
  };
}
