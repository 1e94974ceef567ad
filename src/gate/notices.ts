import type { Workspace } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { Signal } from "../base/signal.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { MinuteTally } from "../limits/tally.ts";

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

/** Workspaces counted separately per minute. Beyond that, they share one key. */
const KEY_LIMIT = 20_000;

export function createLimitNotices(ledger: Ledger, clock: Clock, log: Log): LimitNotices {
  const counted = new Signal<ExceededLimit>();
  const announced = new Signal<ExceededLimit>();
  const tally = new MinuteTally(KEY_LIMIT);
  /** For each workspace that exceeded a limit: the limit in the last entry, and the other one if exceeded since. */
  const said = new Map<string, LimitKind>();
  const unsaid = new Map<string, LimitKind>();
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
      const { enforcement } = workspace.limits;
      log.warn("limit exceeded", {
        workspace: workspace.name,
        limit: kind,
        enforcement,
        before: notice.before,
        also,
      });
      announced.emit({ workspace, limit: kind });
      await ledger.record(workspace.id, {
        phase: "single",
        action: "limit.exceeded",
        outcome: enforcement === "enforced" ? "denied" : "allowed",
        channel: "system",
        actor: "system",
        detail: { limit: kind, enforcement, before: notice.before, also },
      });
    },
  };
}
