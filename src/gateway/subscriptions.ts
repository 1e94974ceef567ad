import type { Workspaces } from "../access/workspaces.ts";
import { toCredits } from "../base/credits.ts";
import type { ConnectorCall } from "../connectors/live.ts";
import type { OpenedConnectors } from "../connectors/open.ts";
import type { ModelCalls } from "../dialects/model-calls.ts";
import type { TokenCounter } from "../dialects/token-counts.ts";
import type { FeedHub } from "../feed/hub.ts";
import { openFeed } from "../feed/open.ts";
import type { Budgets } from "../gate/budget.ts";
import type { LimitNotices } from "../gate/notices.ts";
import type { Metrics } from "../http/metrics.ts";
import type { Announcements } from "../notify/announce.ts";
import {
  approvalChanges,
  approvalKey,
  approvalsPending,
  sharedTaskUsage,
  taskChanges,
  taskUsage,
} from "../tasks/rows/feed.ts";
import type { TaskSignals } from "../tasks/signals.ts";
import type { Vault } from "../vault/vault.ts";
import type { Evidence } from "./evidence.ts";
import type { GateParts } from "./gate.ts";
import type { Platform } from "./platform.ts";
import type { Store } from "./store.ts";
import type { Work } from "./work.ts";

/** Phase 5: subscriptions to changes. */
export function openSubscriptions(
  { clock, log }: Platform,
  { db, nodes }: Store,
  { workspaces, ledgers, announcements }: Evidence,
  { agents, tokens, sessions, notices, budgets, gate }: GateParts,
  { vault, tools, openedTasks, modelCalls, tokenCounts }: Work,
  metrics: Metrics,
) {
  const { connectors } = tools;
  const { tasks, signals } = openedTasks;
  const feed = openFeed({
    ...{ clock, log, nodes, agents, tokens, sessions, workspaces, ledger: ledgers.ledger },
    tasks: (workspaceId, ids) => taskChanges(db, workspaceId, ids),
    approvals: (workspaceId, keys) => approvalChanges(db, workspaceId, keys),
    approvalsPending: (workspaceId, agent) => approvalsPending(db, workspaceId, agent),
    connectorStatus: (workspaceId, name) => connectors.statusOf(workspaceId, name),
    usage: (workspaceId, agent) => {
      const requests = {
        requests_left: gate.requestsLeft(workspaceId),
        requests_per_minute: workspaces.get(workspaceId).limits.requestsPerMinute,
      };
      if (!nodes.isShared) return { ...taskUsage(tasks.scheduler, workspaceId, agent), ...requests };
      return sharedTaskUsage(db, workspaceId, agent).then((counts) => ({ ...counts, ...requests }));
    },
  });
  const sources = {
    workspaces,
    notices,
    budgets,
    vault,
    connectors,
    modelCalls,
    tokenCounts,
    tasks: signals,
  };
  workspaces.settingsChanged.listen((workspaceId) => tasks.scheduler.limitsChanged(workspaceId));
  subscribeFeed(feed, sources);
  subscribeMetrics(metrics, sources);
  subscribeWebhook(announcements, sources);
  return feed;
}

/**
 * The parts that report changes by signals. Anything that must be written in the transaction of a change is a hook
 * instead.
 */
interface Sources {
  readonly workspaces: Workspaces;
  readonly notices: LimitNotices;
  readonly budgets: Budgets;
  readonly vault: Vault;
  readonly connectors: OpenedConnectors["connectors"];
  readonly modelCalls: Pick<ModelCalls, "ended" | "recorded" | "unsent">;
  readonly tokenCounts: Pick<TokenCounter, "ended">;
  readonly tasks: TaskSignals;
}

/** Publishes changes to the readers of a workspace's feed. */
function subscribeFeed(feed: FeedHub, sources: Sources): void {
  const { notices, budgets, vault, connectors, tasks, modelCalls } = sources;
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
  modelCalls.recorded.listen(({ workspaceId, agent, intent, model, status, dialect }) => {
    const data = { agent: agent?.name ?? null, intent, model, status, dialect };
    // One event for each agent: a busy client's calls replace each other.
    const key = String(agent?.id ?? "");
    feed.publish(workspaceId, { name: "model.called", key, agent: agent?.id ?? null, data });
  });
  // Each node learns of connectors by itself, and shows the status that they have there.
  connectors.changed.listen(({ workspaceId, name }) => feed.here.touched(workspaceId, "connector", name));
  tasks.changed.listen(({ workspaceId, task }) => feed.touch(workspaceId, "task", task));
  tasks.approvalChanged.listen(({ workspaceId, task, callId }) => {
    feed.touch(workspaceId, "approval", approvalKey(task, callId));
  });
}

const CONNECTOR_OUTCOMES: readonly ConnectorCall["outcome"][] = ["succeeded", "failed"];

/** A connector's series end with it: otherwise each name that was ever used would be kept. */
function subscribeMetrics(metrics: Metrics, sources: Sources): void {
  const { workspaces, notices, budgets, connectors, tasks, modelCalls, tokenCounts } = sources;
  notices.counted.listen(({ workspace: { name: workspace }, limit }) => {
    metrics.limitExceeded.inc({ workspace, limit });
  });
  budgets.crossed.listen(({ workspaceId, percent }) => {
    metrics.budgetsSpent.inc({ workspace: workspaces.get(workspaceId).name, percent });
  });
  const isThere = (workspaceId: number, name: string) => connectors.statusOf(workspaceId, name) !== undefined;
  connectors.called.listen(({ workspaceId, connector, outcome, durationMs }) => {
    if (!isThere(workspaceId, connector)) return;
    const { name: workspace } = workspaces.get(workspaceId);
    metrics.connectorCalls.inc({ workspace, connector, outcome });
    metrics.connectorSeconds.observe({ workspace, connector }, durationMs / 1000);
  });
  connectors.changed.listen(({ workspaceId, name: connector }) => {
    if (isThere(workspaceId, connector)) return;
    const { name: workspace } = workspaces.get(workspaceId);
    for (const outcome of CONNECTOR_OUTCOMES)
      metrics.connectorCalls.remove({ workspace, connector, outcome });
    metrics.connectorSeconds.remove({ workspace, connector });
  });
  for (const calls of [tasks.modelCalled, modelCalls.ended]) {
    calls.listen(({ model, status, durationMs, credits, inputTokens, outputTokens }) => {
      metrics.modelCalls.inc({ model, status });
      metrics.modelSeconds.observe({ model }, durationMs / 1000);
      if (credits > 0) metrics.credits.inc({ model }, toCredits(credits));
      if (inputTokens > 0) metrics.tokens.inc({ model, kind: "input" }, inputTokens);
      if (outputTokens > 0) metrics.tokens.inc({ model, kind: "output" }, outputTokens);
    });
  }
  modelCalls.ended.listen(({ dialect, model, status, firstTokenMs }) => {
    metrics.clientCalls.inc({ dialect, outcome: status });
    if (firstTokenMs !== null) metrics.firstTokenSeconds.observe({ model }, firstTokenMs / 1000);
  });
  modelCalls.unsent.listen(({ dialect, outcome }) => metrics.clientCalls.inc({ dialect, outcome }));
  tokenCounts.ended.listen(({ status }) => metrics.tokenCounts.inc({ outcome: status }));
  tasks.toolCalled.listen(({ status }) => metrics.toolCalls.inc({ status }));
  tasks.ended.listen(({ status, durationMs }) => {
    metrics.tasksFinished.inc({ status });
    metrics.taskSeconds.observe(durationMs / 1000);
  });
}

/** Posts notices that may be lost in a crash to the webhook. */
function subscribeWebhook(announcements: Announcements, { notices }: Sources): void {
  notices.announced.listen(({ workspace: { id, limits }, limit }) => {
    announcements.limitExceeded(id, limit, limits.enforcement);
  });
}
