import { afterEach, beforeEach, expect } from "bun:test";
import Type from "typebox";
import { type Agents, createAgents } from "../../src/access/agents.ts";
import { OPEN_POLICY } from "../../src/access/tier-policy.ts";
import { openWorkspaces, type Workspaces } from "../../src/access/workspaces.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { builtinTool } from "../../src/connectors/builtin/tool.ts";
import { type CallTool, Catalogue } from "../../src/connectors/catalogue.ts";
import { DirectCalls } from "../../src/connectors/direct/call.ts";
import { ToolRegistry } from "../../src/connectors/registry.ts";
import type { ToolAnswer } from "../../src/connectors/source.ts";
import { Budgets } from "../../src/gate/budget.ts";
import { type DirectCallRecords, openDirectCalls } from "../../src/gate/direct/open.ts";
import { localNodes } from "../../src/nodes/local-nodes.ts";
import { countsInMemory } from "../gate/support.ts";
import { type Gate, gate } from "../tasks/support.ts";
import { type CallBench, openCallBench, origin, tool } from "./bench.ts";

interface Held extends Gate {
  readonly begun: Promise<void>;
}

export let bench: CallBench;

export let workspaces: Workspaces;

export let agents: Agents;

export let budgets: Budgets;

export let catalogue: Catalogue;

export let direct: DirectCallRecords;

export let calls: DirectCalls;

export let agent: { readonly id: number; readonly name: string };

/** Holds the builtin tool `own.change` before it changes anything, and reports whether it has. */
export let change: Held & { isDone: boolean };

/** Calls a tool as the agent. */
export async function call(name: string, abort = new AbortController()): Promise<ToolAnswer> {
  const answer = await calls.call(bench.call("tool.call", agent), name, {}, { abort });
  if ("task" in answer) throw new Error("it waits for a person");
  return answer;
}

/** Adds an upstream whose only tool, `up.echo`, runs `answer`. */
export const upstream = (answer: CallTool) => catalogue.put(1, origin("up"), ["*"], [tool("echo")], answer);

export function outcome() {
  const [intent, ended, ...more] = bench.entries();
  expect(more).toEqual([]);
  expect([intent?.phase, ended?.phase, ended?.ref]).toEqual(["intent", "outcome", intent?.seq]);
  return { outcome: ended?.outcome, code: ended?.code };
}

export type End = [who: string, end: (abort: AbortController) => unknown];

/** Clients word their reasons freely, sometimes exactly as the gateway words its own. */
export const BY_CLIENT: End[] = [
  "cancelled",
  "shutdown",
  "agent_stopped",
  undefined,
  { code: "shutdown" },
].map((reason) => [`the client, saying ${JSON.stringify(reason)}`, (abort) => abort.abort(reason)]);

/** Opens direct calls and an agent for each test of a file. */
export function useDirectCalls(): void {
  beforeEach(async () => {
    bench = await openCallBench();
    const { db, ledger, clock, ids } = bench;
    workspaces = await openWorkspaces(db, clock, {
      requestsPerMinute: 600,
      concurrentTasks: 60,
      enforcement: "soft",
    });
    agents = createAgents(db, clock, workspaces, systemRandom);
    const begun = gate();
    change = { ...gate(), begun: begun.opened, isDone: false };
    const own = builtinTool({
      name: "own.change",
      title: "Change",
      description: "Changes something that cannot be broken off.",
      input: Type.Object({}, { additionalProperties: false }),
      annotations: {},
      async execute() {
        begun.open();
        await change.opened;
        change.isDone = true;
        return { done: true };
      },
    });
    catalogue = new Catalogue([own]);
    const registry = new ToolRegistry(catalogue);
    const toolPrices = [{ pattern: "paid.*", micros: 5 }];
    budgets = new Budgets({
      workspaces,
      clock,
      ...countsInMemory(),
      toolPrices,
      recordCrossing: async () => {},
    });
    const nodes = localNodes("node_1", clock);
    const histories = await bench.histories();
    direct = openDirectCalls({ ...bench, nodes, histories, budgets, workspaces, log: silentLog });
    const given = { db, ...direct, budgets, ledger, agents, workspaces, registry, clock, ids };
    calls = new DirectCalls({ ...given, log: silentLog });
    agent = await db.tx(1, (tx) =>
      agents.create(tx, 1, "clerk", {
        owner: "tests",
        description: null,
        instructions: null,
        memoryScope: ["support"],
        tierPolicy: OPEN_POLICY,
        tools: ["*"],
        approvals: null,
        approvalsRequired: 1,
        maxSteps: 10,
        creditsPerDay: null,
      }),
    );
  });
  afterEach(() => bench.close());
}
