import type { Agents } from "./access/agents.ts";
import { createSecret } from "./access/secret.ts";
import type { Sessions } from "./access/sessions.ts";
import type { SignInLinks } from "./access/sign-in-links.ts";
import type { Tokens } from "./access/tokens.ts";
import type { Workspaces } from "./access/workspaces.ts";
import type { Clock } from "./base/clock.ts";
import type { Ids, RandomSource } from "./base/ids.ts";
import type { Log } from "./base/log.ts";
import { countOpenFiles } from "./base/open-files/count.ts";
import type { Config } from "./config/config.ts";
import { isLoopback } from "./config/listen.ts";
import type { OpenedConnectors } from "./connectors/open.ts";
import type { ModelCalls } from "./dialects/model-calls.ts";
import type { BackgroundResponses } from "./dialects/responses/background/service.ts";
import type { ResponseCalls } from "./dialects/responses/response-calls.ts";
import type { StoredResponses } from "./dialects/responses/stored/service.ts";
import type { TokenCounter } from "./dialects/token-counts.ts";
import type { FeedHub } from "./feed/hub.ts";
import type { Budgets } from "./gate/budget.ts";
import type { DirectCallRecords } from "./gate/direct/open.ts";
import type { Gate } from "./gate/gate.ts";
import { LoopGuard } from "./gate/loops.ts";
import { openUsageReports } from "./gate/usage/report.ts";
import { LongAnswers } from "./http/answer/long-answers.ts";
import { type App, createApp } from "./http/app.ts";
import { BodyShares } from "./http/body/shares.ts";
import { OpenCalls } from "./http/connections/open-calls.ts";
import type { ConnectionPlan } from "./http/connections/plan.ts";
import type { Metrics } from "./http/metrics.ts";
import type { Readiness } from "./http/routes/system.ts";
import { OpenCallers } from "./http/streams/open-callers.ts";
import { OpenStreams } from "./http/streams/open-streams.ts";
import type { OpenLedger } from "./ledger/open.ts";
import type { CreateFixtures } from "./mcp/fixtures.ts";
import { LazyMcpDoor } from "./mcp/lazy-door.ts";
import { SharedSessions } from "./mcp/shared/shared-sessions.ts";
import type { ModelGateway } from "./models/gateway.ts";
import type { Nodes } from "./nodes/nodes.ts";
import type { Db } from "./store/db.ts";
import { endAgentsWork, endWorkspacesWork } from "./tasks/ending/end-work.ts";
import type { OpenTasks } from "./tasks/open.ts";
import type { Schedules } from "./tasks/schedules/schedules.ts";
import type { Vault } from "./vault/vault.ts";

/** The parts that the HTTP interfaces use. */
export interface Rooms {
  readonly config: Config;
  readonly db: Db;
  readonly nodes: Nodes;
  readonly ledgers: OpenLedger;
  readonly agents: Agents;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  readonly links: SignInLinks;
  readonly workspaces: Workspaces;
  readonly metrics: Metrics;
  readonly budgets: Budgets;
  readonly gate: Gate;
  readonly feed: FeedHub;
  readonly modelGateway: ModelGateway;
  readonly modelCalls: ModelCalls;
  readonly background: Pick<BackgroundResponses, "endsWritten">;
  readonly responseCalls: ResponseCalls;
  readonly storedResponses: StoredResponses;
  readonly tokenCounts: TokenCounter;
  readonly vault: Vault;
  readonly direct: DirectCallRecords;
  readonly tools: OpenedConnectors;
  readonly openedTasks: OpenTasks;
  readonly schedules: Schedules;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly random: RandomSource;
  readonly log: Log;
  readonly readiness: Readiness;
  /** Null if the system has no limit on open files or does not report it. */
  readonly plan: ConnectionPlan | null;
  readonly mcpFixtures: CreateFixtures | undefined;
  /** The base URL of the console for browsers. Null if the server is not listening. */
  consoleUrl(): string | null;
  /** Called when a webhook delivery is due. */
  webhookDue(): void;
}

export interface Doors {
  readonly app: App;
  readonly mcp: LazyMcpDoor;
  readonly openCalls: OpenCalls;
  /** A secret that identifies the command line on the same machine; new at each start. */
  readonly operatorSecret: string;
}

/** Creates the HTTP interfaces: REST, MCP and the console. */
export function openDoors(rooms: Rooms): Doors {
  const {
    config,
    db,
    ledgers,
    agents,
    tokens,
    workspaces,
    metrics,
    budgets,
    gate,
    modelGateway,
    vault,
    direct,
    tools,
  } = rooms;
  const { openedTasks, schedules, clock, ids, random, log, readiness, webhookDue } = rooms;
  const { sessions, links, consoleUrl, mcpFixtures } = rooms;
  const { tasks, approvalService, quoted, eraser } = openedTasks;
  const { proofs, keys, rotation } = ledgers;
  const { instance } = keys;
  const streams = new OpenStreams(rooms.plan?.streamsPerWorkspace, rooms.plan?.streams);
  const answers = new LongAnswers({ clock, log });
  const openCalls = new OpenCalls(rooms.plan?.calls ?? Number.POSITIVE_INFINITY);
  const loops = new LoopGuard(instance, clock, log);
  const mcp = new LazyMcpDoor(async () => ({
    gate,
    loops,
    instance,
    registry: tools.registry,
    calls: tools.calls,
    agents,
    tokens,
    tasks,
    sessionStore: rooms.nodes.isShared ? new SharedSessions({ db, nodes: rooms.nodes, clock, log }) : null,
    vault,
    streams,
    answers,
    clock,
    ids,
    random,
    log,
    publicUrl: config.publicUrl ?? null,
    isLoopback: isLoopback(config.listen.host),
    fixtures: mcpFixtures?.({ gate, clock }) ?? null,
  }));

  const work = { tasks, running: direct.running };
  const endsWritten = async (workspaceId: number, agentId: number | null) => {
    await Promise.all([tasks, rooms.background].map((each) => each.endsWritten(workspaceId, agentId)));
  };
  const operatorSecret = createSecret(random);
  const callers = new OpenCallers({ gate, tokens, sessions, clock, log });
  const app = createApp({
    endpoints: {
      ...{ gate, ids, metrics, operatorSecret, publicUrl: config.publicUrl ?? null },
      bodies: new BodyShares({ clock }),
      answers,
      openCalls,
    },
    log,
    loops,
    db,
    agents: {
      ...{ agents, budgets, tokens, clock },
      tierNumbers: () => modelGateway.tiers.numbers(),
      endWork: (workspaceId, agent) => endAgentsWork(work, workspaceId, agent),
      endsWritten: (workspaceId, agent) => endsWritten(workspaceId, agent.id),
    },
    tasks: { tasks, clock, streams, callers },
    events: { feed: rooms.feed, agents, tokens, streams, clock, gate },
    schedules: { schedules },
    webhooks: { clock, wake: webhookDue, url: config.notify.webhook ?? null },
    tokens: { tokens, agents, clock },
    sessions: { sessions, tokens, links, workspaces, clock },
    consoleLinks: { links, tokens, url: consoleUrl },
    models: { models: modelGateway, agents, clock },
    dialects: {
      ...{ modelCalls: rooms.modelCalls, responseCalls: rooms.responseCalls, tokenCounts: rooms.tokenCounts },
      ...{ streams, callers, clock },
    },
    responses: { storedResponses: rooms.storedResponses, streams, callers, clock },
    vault: { vault, agents, clock, quoted },
    payloads: { db, lists: ledgers.lists, agents, eraser },
    approvals: { approvalService },
    connectors: {
      connectors: tools.connectors,
      programs: tools.programs,
      catalogue: tools.registry.catalogue,
      ...{ agents, workspaces },
    },
    tools: { calls: tools.calls, clock },
    proofs: { proofs, lists: ledgers.lists, keys, agents },
    rotation,
    usage: { db, clock, reports: openUsageReports(db, rooms.nodes.isShared) },
    exports: {
      ...{ agents, clock, keys, payloadDays: config.ledger.payloadDays },
      ...{ heads: ledgers.heads, lists: ledgers.lists, faults: ledgers.faults },
    },
    mcp,
    workspace: {
      ...{ workspaces, budgets, ledger: ledgers.ledger },
      usage: async (workspaceId) => ({
        tasksRunning: tasks.scheduler.runningEverywhere(workspaceId),
        tasksQueued: tasks.scheduler.waitingEverywhere(workspaceId),
        creditsThisMonth: await budgets.spentThisMonth(db, workspaceId),
      }),
      clock,
      endWork: (workspaceId) => endWorkspacesWork(work, workspaceId),
      endsWritten: (workspaceId) => endsWritten(workspaceId, null),
    },
    nodes: {
      async listNodes() {
        const nodes = await rooms.nodes.list();
        // A command that runs the gateway within its own process is no server.
        return consoleUrl() === null ? nodes.filter(({ id }) => id !== rooms.nodes.id) : nodes;
      },
    },
    status: {
      startedAt: clock.now(),
      engine: rooms.nodes.isShared ? "postgres" : "sqlite",
      failing: () => readiness.failing(),
      async workspaces() {
        const sizes = await ledgers.heads.sizes();
        return workspaces.list().map(({ id, name, status }) => ({
          ...{ name, status },
          tasksRunning: tasks.scheduler.runningIn(id).length,
          tasksQueued: tasks.scheduler.waitingIn(id).length,
          ledgerEntries: sizes.get(id) ?? 0,
        }));
      },
      connectors() {
        const all = tools.connectors.all();
        const failing = all.filter(({ connector }) => connector.status !== "ready");
        return {
          ready: all.length - failing.length,
          failing: failing.map(
            ({ workspaceId, connector }) => `${workspaces.get(workspaceId).name}/${connector.name}`,
          ),
        };
      },
    },
    system: {
      ids,
      clock,
      gate,
      metrics,
      operatorSecret,
      readiness,
      measure() {
        metrics.tasksRunning.set(tasks.scheduler.totalRunning);
        metrics.tasksQueued.set(tasks.scheduler.totalWaiting);
        metrics.reservations.set(budgets.reservations);
        metrics.mcpSessions.set(mcp.openSessions);
        metrics.connectorUp.reset();
        for (const { workspaceId, connector } of tools.connectors.all()) {
          const labels = { workspace: workspaces.get(workspaceId).name, connector: connector.name };
          metrics.connectorUp.set(labels, connector.status === "ready" ? 1 : 0);
        }
        metrics.residentBytes.set(process.memoryUsage.rss());
        const openFiles = countOpenFiles();
        if (openFiles !== null) metrics.openFiles.set(openFiles);
        if (rooms.plan) {
          metrics.openFilesLimit.set(rooms.plan.openFiles);
          metrics.connectionsLimit.set(rooms.plan.connections);
        }
      },
    },
  });
  return { app, mcp, openCalls, operatorSecret };
}
