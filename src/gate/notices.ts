import type { Workspace } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { Signal } from "../base/signal.ts";
import type { EntryDraft } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { MinuteTally } from "../limits/tally.ts";
import type { Db, Tx } from "../store/db.ts";

export type LimitKind = "requests" | "tasks";

export interface ExceededLimit {
  readonly workspace: Workspace;
  readonly limit: LimitKind;
}

export interface LimitNotices {
  /** Emits every call that exceeds a limit. */
  readonly counted: Signal<ExceededLimit>;
  /** Emits at most once a minute, like the ledger entry. */
  readonly announced: Signal<ExceededLimit>;
  /**
   * Reports that a workspace exceeded a limit: one ledger entry and one log line per minute, whichever limit comes
   * first. If another limit was exceeded in that minute, the next entry names it as `also`.
   */
  exceeded(workspace: Workspace, kind: LimitKind): Promise<void>;
}

/** What a notice reports. */
export interface NoticeFacts {
  readonly limit: LimitKind;
  /** Calls that were counted since the last notice. */
  readonly before: number;
  /** Another limit that was exceeded since. */
  readonly also: LimitKind | undefined;
}

/** Lets one of several nodes report that a workspace exceeded a limit in a minute. */
export interface NoticeClaims {
  /**
   * MUST be called in the transaction of the notice's entry, which names the workspace.
   * @returns what the notice reports, or which limit another node's notice named in this minute
   */
  claim(
    tx: Tx,
    workspaceId: number,
    minute: number,
    facts: NoticeFacts,
  ): Promise<
    | { readonly isFirst: true; readonly before: number; readonly also: LimitKind | undefined }
    | { readonly isFirst: false; readonly named: LimitKind }
  >;
}

/** For a store that several nodes share. */
export interface SharedNotices {
  readonly db: Pick<Db, "tx">;
  readonly claims: NoticeClaims;
}

const MINUTE_MS = 60_000;
/** Workspaces counted separately per minute. Beyond that, they share one key. */
const KEY_LIMIT = 20_000;

/** @param shared null if one process uses the store, which then decides in memory */
export function createLimitNotices(
  ledger: Ledger,
  clock: Clock,
  log: Log,
  shared: SharedNotices | null = null,
): LimitNotices {
  const counted = new Signal<ExceededLimit>();
  const announced = new Signal<ExceededLimit>();
  const tally = new MinuteTally(KEY_LIMIT);
  /** For each workspace that exceeded a limit: the limit in the last entry, and the other one if exceeded since. */
  const said = new Map<string, LimitKind>();
  const unsaid = new Map<string, LimitKind>();

  function announce(workspace: Workspace, { limit, before, also }: NoticeFacts): void {
    const { enforcement } = workspace.limits;
    log.warn("limit exceeded", { workspace: workspace.name, limit, enforcement, before, also });
    announced.emit({ workspace, limit });
  }

  /** Reports it unless another node has done so in this minute. @returns the limit that the minute's notice names */
  async function claim(
    { db, claims }: SharedNotices,
    workspace: Workspace,
    facts: NoticeFacts,
  ): Promise<LimitKind> {
    const minute = Math.floor(clock.now() / MINUTE_MS);
    const result = await db.tx(workspace.id, async (tx) => {
      const claimed = await claims.claim(tx, workspace.id, minute, facts);
      if (claimed.isFirst)
        await ledger.append(tx, workspace.id, entryOf(workspace, { ...facts, ...claimed }));
      return claimed;
    });
    if (!result.isFirst) return result.named;
    announce(workspace, { ...facts, ...result });
    return facts.limit;
  }

  return {
    counted,
    announced,
    async exceeded(workspace, kind) {
      counted.emit({ workspace, limit: kind });
      const notice = tally.note(String(workspace.id), clock.now());
      if (notice.kind === "counted") {
        if (said.get(notice.key) !== kind) unsaid.set(notice.key, kind);
        return;
      }
      const also = unsaid.get(notice.key);
      unsaid.delete(notice.key);
      said.set(notice.key, kind);
      const facts = { limit: kind, before: notice.before, also };
      if (shared) {
        said.set(notice.key, await claim(shared, workspace, facts));
        return;
      }
      announce(workspace, facts);
      await ledger.record(workspace.id, entryOf(workspace, facts));
    },
  };
}

function entryOf({ limits: { enforcement } }: Workspace, { limit, before, also }: NoticeFacts): EntryDraft {
  return {
    phase: "single",
    action: "limit.exceeded",
    outcome: enforcement === "enforced" ? "denied" : "allowed",
    channel: "system",
    actor: "system",
    detail: { limit, enforcement, before, also },
  };
}
