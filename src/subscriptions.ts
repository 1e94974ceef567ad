import type { Workspaces } from "./access/workspaces.ts";
import { toCredits } from "./base/credits.ts";
import type { OpenedConnectors } from "./connectors/open.ts";
import type { FeedHub } from "./feed/hub.ts";
import type { Budgets } from "./gate/budget.ts";
import type { LimitNotices } from "./gate/notices.ts";
import type { Metrics } from "./http/metrics.ts";
import type { OpenLedger } from "./ledger/open.ts";
import type { Announcements } from "./notify/announce.ts";
import { approvalKey } from "./tasks/feed.ts";
import type { TaskSignals } from "./tasks/signals.ts";
import type { Vault } from "./vault/vault.ts";

/** The parts that report changes by signals. What must be written in the transaction of a change is a hook instead. */
export interface Sources {
  readonly workspaces: Workspaces;
  readonly notices: LimitNotices;
  readonly budgets: Budgets;
  readonly vault: Vault;
  readonly connectors: OpenedConnectors["connectors"];
  readonly tasks: TaskSignals;
}

/** Publishes changes to the readers of a workspace's feed. */
export function subscribeFeed(feed: FeedHub, sources: Sources): void {
  const { notices, budgets, vault, connectors, tasks } = sources;
  notices.announced.listen(({ workspace: { id, limits }, limit }) => {
    const { enforcement } = limits;
    feed.publish(id, { name: "limit.exceeded", key: limit, data: { limit, enforcement } });
  });
  budgets.crossed.listen(({ workspaceId, budget, agent, percent }) => {
    const key = `${budget} ${agent} ${percent}`;
    feed.publish(workspaceId, { name: "budget.spent", key, agent, data: { budget, agent, percent } });
  });
  vault.changed.listen(({ workspaceId, ...data }) => {
    feed.publish(workspaceId, { name: "document.changed", key: data.id, path: data.scope, data });
  });
  connectors.changed.listen(({ workspaceId, name }) => feed.touch(workspaceId, "connector", name));
  tasks.changed.listen(({ workspaceId, task }) => feed.touch(workspaceId, "task", task));
  tasks.approvalChanged.listen(({ workspaceId, task, callId }) => {
    feed.touch(workspaceId, "approval", approvalKey(task, callId));
  });
}

export function subscribeMetrics(metrics: Metrics, sources: Sources): void {
  const { workspaces, notices, budgets, connectors, tasks } = sources;
  notices.counted.listen(({ workspace: { name: workspace }, limit }) => {
    metrics.limitExceeded.inc({ workspace, limit });
  });
  budgets.crossed.listen(({ workspaceId, percent }) => {
    metrics.budgetsSpent.inc({ workspace: workspaces.get(workspaceId).name, percent });
  });
  connectors.called.listen(({ workspaceId, connector, outcome, durationMs }) => {
    const { name: workspace } = workspaces.get(workspaceId);
    metrics.connectorCalls.inc({ workspace, connector, outcome });
    metrics.connectorSeconds.observe({ workspace, connector }, durationMs / 1000);
  });
  tasks.modelCalled.listen(({ model, status, durationMs, credits }) => {
    metrics.modelCalls.inc({ model, status });
    metrics.modelSeconds.observe({ model }, durationMs / 1000);
    if (credits > 0) metrics.credits.inc({ model }, toCredits(credits));
  });
  tasks.toolCalled.listen(({ status }) => metrics.toolCalls.inc({ status }));
  tasks.ended.listen(({ status, durationMs }) => {
    metrics.tasksFinished.inc({ status });
    metrics.taskSeconds.observe(durationMs / 1000);
  });
}

/** Posts to the webhook what may be lost in a crash. */
export function subscribeWebhook(
  announcements: Announcements,
  { notices }: Pick<Sources, "notices">,
  { checkpoints, keys }: Pick<OpenLedger, "checkpoints" | "keys">,
  workspaces: Workspaces,
): void {
  notices.announced.listen(({ workspace: { id, limits }, limit }) => {
    announcements.limitExceeded(id, limit, limits.enforcement);
  });
  checkpoints.published.listen(({ workspaceId, head: { size, note } }) => {
    announcements.checkpoint(workspaceId, keys.originOf(workspaces.get(workspaceId).name), size, note);
  });
}
