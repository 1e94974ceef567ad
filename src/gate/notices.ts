import type { Workspace } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { MinuteTally } from "../limits/tally.ts";

export type LimitKind = "requests" | "tasks";

export interface LimitNotices {
  /** Notes that a workspace went over a limit: one ledger entry and one word to the operator per minute. */
  exceeded(workspace: Workspace, kind: LimitKind): Promise<void>;
}

/** Workspaces told apart in one minute; past that they share one key. */
const KEY_LIMIT = 20_000;

export function createLimitNotices(
  ledger: Ledger,
  clock: Clock,
  log: Log,
  tell: (workspace: string, kind: LimitKind) => void,
): LimitNotices {
  const tally = new MinuteTally(KEY_LIMIT);
  return {
    async exceeded(workspace, kind) {
      tell(workspace.name, kind);
      const notice = tally.note(String(workspace.id), clock.now());
      if (notice.kind === "counted") return;
      const { enforcement } = workspace.limits;
      log.warn("limit exceeded", {
        workspace: workspace.name,
        limit: kind,
        enforcement,
        before: notice.before,
      });
      await ledger.record(workspace.id, {
        phase: "single",
        action: "limit.exceeded",
        outcome: enforcement === "enforced" ? "denied" : "allowed",
        channel: "system",
        actor: "system",
        detail: { limit: kind, enforcement, before: notice.before },
      });
    },
  };
}
