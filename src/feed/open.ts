import type { Agents } from "../access/agents.ts";
import type { Tokens } from "../access/tokens.ts";
import type { Workspaces } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import { MICROS_PER_CREDIT } from "../base/credits.ts";
import type { Log } from "../base/log.ts";
import type { Signal } from "../base/signal.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Nodes } from "../nodes/nodes.ts";
import type { ChannelParts, FeedLookup } from "./channel.ts";
import type { FeedEvent } from "./events.ts";
import { FeedHub } from "./hub.ts";
import { SharedFeed } from "./shared-feed.ts";

export interface OpenFeedParts extends Pick<ChannelParts, "usage" | "approvalsPending"> {
  readonly clock: Clock;
  readonly log: Log;
  readonly nodes: Pick<Nodes, "bus" | "isShared">;
  readonly agents: Pick<Agents, "changed" | "agentChanged" | "standing">;
  readonly tokens: Pick<Tokens, "changed" | "tokenChanged">;
  readonly sessions: { readonly changed: Signal<void> };
  readonly workspaces: Pick<Workspaces, "changed" | "settingsChanged" | "get">;
  readonly ledger: Pick<Ledger, "grown">;
  readonly tasks: FeedLookup;
  readonly approvals: FeedLookup;
  /** The status of a connector; undefined if there is none with this name. */
  connectorStatus(workspaceId: number, name: string): "ready" | "unreachable" | "disabled" | undefined;
}

/** Connects the feed to the signals of lower rooms. Other rooms call the hub themselves. */
export function openFeed(parts: OpenFeedParts): FeedHub {
  const { clock, log, agents, tokens, sessions, workspaces, ledger, usage, approvalsPending } = parts;
  const { bus, isShared } = parts.nodes;
  const channels: ChannelParts = {
    ...{ clock, log, usage, approvalsPending },
    lookups: {
      task: parts.tasks,
      approval: parts.approvals,
      agent: (workspaceId, keys) => agentChanges(agents, workspaceId, keys),
      connector: (workspaceId, names) =>
        names.map((name) => connectorChange(name, parts.connectorStatus(workspaceId, name))),
      workspace: (workspaceId) => [workspaceChange(workspaces, workspaceId)],
    },
  };
  const hub = new FeedHub(channels, isShared ? (readers) => new SharedFeed(bus, clock, readers) : undefined);
  // These signals tell of the changes of all nodes.
  const { here } = hub;
  agents.agentChanged.listen(({ workspaceId, id }) => here.touched(workspaceId, "agent", String(id)));
  workspaces.changed.listen((workspaceId) => here.touched(workspaceId, "workspace", ""));
  workspaces.settingsChanged.listen((workspaceId) => here.touched(workspaceId, "workspace", ""));
  tokens.tokenChanged.listen(({ workspaceId, agentId }) => {
    here.published(workspaceId, { name: "token.changed", key: String(agentId), data: {}, agent: agentId });
  });
  ledger.grown.listen(({ workspaceId, size }) => hub.grown(workspaceId, size));
  // Whether tokens of an agent see a document depends on the agent's memory scope.
  agents.changed.listen((workspaceId) => hub.rightsChanged(workspaceId));
  tokens.changed.listen(() => hub.rightsChanged());
  sessions.changed.listen(() => hub.rightsChanged());
  return hub;
}

/** Reads the agents that currently have these names, with their ids. */
async function agentChanges(
  agents: Pick<Agents, "standing">,
  workspaceId: number,
  ids: readonly string[],
): Promise<FeedEvent[]> {
  const found: FeedEvent[] = [];
  for (const key of ids) {
    const standing = await agents.standing(workspaceId, Number(key));
    if (!standing) continue;
    const { id, name, status, version } = standing;
    found.push({ name: "agent.changed", key: name, agent: id, data: { name, status, version } });
  }
  return found;
}

function connectorChange(name: string, status: "ready" | "unreachable" | "disabled" | undefined): FeedEvent {
  return { name: "connector.changed", key: name, data: { name, status: status ?? "removed" } };
}

function workspaceChange(workspaces: Pick<Workspaces, "get">, workspaceId: number): FeedEvent {
  const { status, limits, creditsPerMonth } = workspaces.get(workspaceId);
  const data = {
    limits: {
      requests_per_minute: limits.requestsPerMinute,
      concurrent_tasks: limits.concurrentTasks,
      enforcement: limits.enforcement,
    },
    budget: { credits_per_month: creditsPerMonth === null ? null : creditsPerMonth / MICROS_PER_CREDIT },
  };
  return { name: "workspace.changed", key: "", data: { status }, more: { scope: "settings:write", data } };
}
