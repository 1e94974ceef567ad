import { dispatchTask } from "./api/dispatch-task.ts";
import { readAgent } from "./api/read-agent.ts";
import { runTasks } from "./api/run-tasks.ts";
import { firstPage } from "./console/first-page.ts";
import { streaming } from "./console/streaming.ts";
import type { Figure } from "./figures.ts";
import { growth } from "./growth/growth.ts";
import { appends } from "./ledger/appends.ts";
import { exports } from "./ledger/exports.ts";
import { pages } from "./ledger/pages.ts";
import { proofs } from "./ledger/proofs.ts";
import { verification } from "./ledger/verification.ts";
import { callTool } from "./mcp/call-tool.ts";
import { callUpstream } from "./mcp/call-upstream.ts";
import { listTools } from "./mcp/list-tools.ts";
import { sessions } from "./mcp/sessions.ts";
import { besidePortkey } from "./models/beside-portkey.ts";
import { completions } from "./models/completions.ts";
import { cancelling } from "./oversight/cancelling.ts";
import { stopping } from "./oversight/stopping.ts";
import { beside, ratesBeside } from "./peers/beside.ts";
import { langgraph } from "./peers/langgraph/langgraph.ts";
import { mastra } from "./peers/mastra/mastra.ts";
import { portkey, portkeyCompletions } from "./peers/portkey/portkey.ts";
import { restate } from "./peers/restate/restate.ts";
import { voltagent } from "./peers/voltagent/voltagent.ts";
import { allocations } from "./run/allocations.ts";
import { runs } from "./run/runs.ts";
import { statements } from "./run/statements.ts";
import { syncs } from "./run/syncs.ts";
import { writes } from "./run/writes.ts";
import { fixedQueues, manyWorkspaces, oneWorkspace } from "./scale/calls.ts";
import { latency } from "./scale/latency.ts";
import { streams } from "./scale/streams.ts";
import { idleMemory, starts } from "./start/starts.ts";
import { crowd } from "./stream/crowd.ts";
import { fanOut } from "./stream/fan-out.ts";
import { quiet } from "./stream/quiet.ts";
import { relay } from "./stream/relay.ts";
import { besideCalls } from "./vault/beside-calls.ts";
import { hnswlib, lancedb } from "./vault/beside-peers.ts";
import { quality } from "./vault/quality.ts";
import { scale } from "./vault/scale.ts";
import type { Workshop } from "./workshop.ts";

/** Starts its servers, measures them, and stops them. */
export type Scenario = (workshop: Workshop) => Promise<Figure[]>;

/** Everything that can be measured, by area. */
export const AREAS: Readonly<Record<string, Readonly<Record<string, Scenario>>>> = {
  api: {
    "reading an agent": readAgent,
    "dispatching tasks": dispatchTask,
    "running tasks": runTasks,
  },
  start: {
    starting: starts,
    "idle memory": idleMemory,
  },
  run: {
    "task runs": runs,
    "what a run writes": writes,
    "syncs of a run": syncs,
    "statements of a run": statements,
    "memory that a run allocates": allocations,
    "beside Portkey": ratesBeside(portkeyCompletions, "run"),
  },
  stream: {
    "relaying a model's stream": relay,
    "one task, many readers": fanOut,
    "quiet streams": quiet,
    "many tasks, slow readers": crowd,
  },
  models: {
    "chat completions": completions,
    "beside Portkey": besidePortkey,
  },
  mcp: {
    "calling a tool": callTool,
    "listing 200 tools": listTools,
    "open sessions": sessions,
    "calling an upstream's tool": callUpstream,
  },
  oversight: {
    cancelling,
    stopping,
  },
  console: {
    "the first page": firstPage,
    "a task that streams": streaming,
  },
  ledger: {
    "durable entries": appends,
    "proofs of entries": proofs,
    "filtered pages": pages,
    exports,
    verifying: verification,
  },
  growth: {
    "longer histories": growth,
  },
  vault: {
    "quality of search": quality,
    "many passages, many searchers": scale,
    "beside LanceDB": lancedb,
    "beside hnswlib": hnswlib,
    "documents beside calls": besideCalls,
  },
  scale: {
    "calls of eight workspaces": manyWorkspaces,
    "calls with a fixed number of queues": fixedQueues,
    "calls of one workspace": oneWorkspace,
    "latency beside a data directory": latency,
    "streams read on another server": streams,
  },
  peers: {
    Portkey: beside(portkey),
    VoltAgent: beside(voltagent),
    Mastra: beside(mastra),
    LangGraph: beside(langgraph),
    Restate: beside(restate),
  },
};

/** Areas in which the server under test has one core to itself, and the load and the upstream have another. */
export const ON_SEPARATE_CORES: ReadonlySet<string> = new Set([
  ...["api", "run", "stream", "models", "mcp", "peers"],
]);
