import type { Config } from "../config/config.ts";
import { openConnectors } from "../connectors/open.ts";
import { ModelCalls } from "../dialects/model-calls.ts";
import { BackgroundResponses } from "../dialects/responses/background/service.ts";
import { ResponseRequests } from "../dialects/responses/prepare-request.ts";
import { ResponseCalls } from "../dialects/responses/response-calls.ts";
import { StoredResponses } from "../dialects/responses/stored/service.ts";
import { ResponseStore } from "../dialects/responses/stored/store.ts";
import { TokenCounter } from "../dialects/token-counts.ts";
import { openDirectCalls } from "../gate/direct/open.ts";
import type { ConnectionPlan } from "../http/connections/plan.ts";
import { modelRequests, REQUEST_LIMIT_VARIABLE } from "../limits/request-plan.ts";
import { openEmbedding } from "../models/embed/open.ts";
import { WorkspaceEstimates } from "../models/expected-cost.ts";
import { createModelGateway } from "../models/gateway.ts";
import { Forgetting } from "../store/forgetting.ts";
import { openTasks } from "../tasks/open.ts";
import { openSchedules } from "../tasks/schedules/open.ts";
import { openVault } from "../vault/vault.ts";
import type { Evidence } from "./evidence.ts";
import type { GateParts } from "./gate.ts";
import type { Platform } from "./platform.ts";
import type { Store } from "./store.ts";

const HOUR_MS = 3_600_000;

export interface WorkOptions {
  /** The program's entry, which starts the processes that read documents. */
  readonly main: URL;
  readonly vaultWorker: URL;
  readonly plan: ConnectionPlan | null;
  /** The port that the server listens on; null while it does not. */
  readonly listening: () => number | null;
}

export type Work = Awaited<ReturnType<typeof openWork>>;

/** Phase 4: the parts that agents use, from the bottom up: models, the vault, tools, tasks, schedules. */
export async function openWork(
  config: Config,
  { clock, random, ids, log }: Platform,
  { db, files, nodes, index, secretKey }: Store,
  { workspaces, ledgers, announcements, histories }: Evidence,
  { agents, tokens, notices, budgets, gate }: GateParts,
  { main, vaultWorker, plan, listening }: WorkOptions,
) {
  const { ledger, lists, faults, keys } = ledgers;
  const { instance } = keys;
  const ownFiles = plan && plan.openFiles - plan.connections;
  const modelGateway = await createModelGateway(
    config,
    clock,
    modelRequests(Bun.env[REQUEST_LIMIT_VARIABLE], ownFiles),
  );
  const forgetting = new Forgetting({ files, clock, log });
  const embedding = await openEmbedding({ config, db, clock, random, log });
  const { embedder, formerEmbedder } = embedding;
  const vault = await openVault({
    ...{ db, nodes, clock, ids, log, random, forgetting, main, embedder, formerEmbedder },
    ...{ index, program: vaultWorker, reading: config.vault },
  });
  const direct = openDirectCalls({
    ...{ db, nodes, ledger, lists, histories, budgets, workspaces, clock, log },
  });
  const tools = await openConnectors({
    ...{
      direct,
      config,
      db,
      nodes,
      forgetting,
      ledger,
      budgets,
      agents,
      tokens,
      workspaces,
      vault,
      clock,
      ids,
      random,
      log,
    },
    ...{ secretKey, instance, main, listening },
  });
  const estimates = new WorkspaceEstimates();
  const openedTasks = openTasks({
    estimates,
    ...{ db, ledger, lists, faults, histories, budgets, workspaces, agents, tokens, modelGateway, notices },
    ...{ clock, ids, log, nodes, forgetting, vault, direct, tools: tools.registry },
    nodeCeiling: config.limits.runningTasksPerNode,
    queueLimit: config.limits.queuedTasks,
    payloadDays: config.ledger.payloadDays,
    approvalExpiresMs: config.approvals.expireHours * HOUR_MS,
    hooks: {
      ending: (tx, task) => announcements.taskFinished(tx, task),
      approvalRequired: (tx, call) => announcements.approvalRequired(tx, call),
    },
  });
  const { tasks } = openedTasks;
  const modelCalls = new ModelCalls({
    ...{ db, ledger, budgets, workspaces, agents, modelGateway, estimates, direct, clock, ids, log },
    ...{ instance, scheduler: tasks.scheduler },
  });
  const tokenCounts = new TokenCounter({
    ...{ ledger, workspaces, agents, modelGateway, direct, clock, log, instance },
  });
  const responses = new ResponseStore({ db, lists, histories });
  const requests = new ResponseRequests({ modelGateway, agents, clock, log, store: responses });
  const background = new BackgroundResponses({
    ...{
      db,
      ledger,
      gate,
      tokens,
      agents,
      workspaces,
      histories,
      direct,
      modelCalls,
      requests,
      nodes,
      clock,
      ids,
      log,
    },
    ...{ store: responses, scheduler: tasks.scheduler, conversations: openedTasks.conversations },
    ...openedTasks.sharing,
    signals: openedTasks.signals,
  });
  openedTasks.sharing.add(background.claimed);
  const responseCalls = new ResponseCalls({ modelCalls, requests, background });
  const storedResponses = new StoredResponses({
    ...{ agents, clock, background, store: responses, eraser: openedTasks.eraser },
    signals: openedTasks.signals,
  });
  tools.calls.askThrough(openedTasks.calls);
  const { schedules, runs } = openSchedules({
    ...{ db, ledger, gate, tokens, workspaces, agents, modelGateway, tasks, forgetting, clock, ids, log },
    ...{ lists, faults, tools: tools.registry, nodes },
  });
  return {
    modelGateway,
    modelCalls,
    background,
    responseCalls,
    storedResponses,
    tokenCounts,
    forgetting,
    embedding,
    vault,
    direct,
    tools,
    openedTasks,
    schedules,
    runs,
  };
}
