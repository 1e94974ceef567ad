import type { Workspace } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { MinuteTally } from "../limits/tally.ts";

export type LimitKind = "requests" | "tasks";

export interface LimitListeners {
  /** Told of every call that went over a limit. */
  count(workspace: string, kind: LimitKind): void;
  /** Told once a minute, as the ledger is. */
  announce(workspace: Workspace, kind: LimitKind): void;
}

export interface LimitNotices {
  /**
   * Notes that a workspace went over a limit: one ledger entry and one word in the log a minute, whichever limit comes
   * first. Another limit passed in that minute is named by the next entry, as `also`.
   */
  exceeded(workspace: Workspace, kind: LimitKind): Promise<void>;
}

/** Workspaces told apart in one minute; past that they share one key. */
const KEY_LIMIT = 20_000;

export function createLimitNotices(
  ledger: Ledger,
  clock: Clock,
  log: Log,
  { count, announce }: LimitListeners,
): LimitNotices {
  const tally = new MinuteTally(KEY_LIMIT);
  /** Of each workspace that was over a limit: what the last entry named, and the other one if it was passed since. */
  const said = new Map<string, LimitKind>();
  const unsaid = new Map<string, LimitKind>();
  return {
    async exceeded(workspace, kind) {
      count(workspace.name, kind);
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
      announce(workspace, kind);
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
