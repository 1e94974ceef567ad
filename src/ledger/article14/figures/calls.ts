import type { ReportEntryFields } from "../format/entry.ts";
import { CallsByName, countCall, noCalls } from "./call-tally.ts";
import { CappedTally } from "./capped.ts";
import { refusalOf, showsAgent } from "./refusals.ts";
import type { Timeline } from "./timeline.ts";

const AGENTS = 100;

interface AgentTally {
  tasks: number;
  modelCalls: number;
  /** The model calls that clients made themselves, outside of tasks. */
  clientCalls: number;
  toolCalls: number;
  /** Refused by policy. */
  refused: number;
  decisions: number;
}

/** Use of models and tools, in total and by agent. */
export class Calls {
  /** By model and tier, keyed by `modelKey`. */
  readonly models = new CallsByName();
  readonly tools = new CallsByName();
  readonly agents = new CappedTally<AgentTally>(AGENTS, () => ({
    tasks: 0,
    modelCalls: 0,
    clientCalls: 0,
    toolCalls: 0,
    refused: 0,
    decisions: 0,
  }));
  /** Model calls of clients, outside of tasks, by the API they use: a part of `models`. */
  readonly clients = new CallsByName();
  readonly allClients = noCalls();
  /** Intents of `allClients` that do not name an agent. */
  clientsWithoutAgent = 0;
  /** Clients' prompts whose tokens were counted, by model. They are not model calls. */
  readonly counts = new CallsByName();
  readonly allCounts = noCalls();
  /** The counts that Gatehouse estimated without sending anything. */
  estimatedCounts = 0;
  /** Refused requests that name an agent, which may never have existed. */
  readonly #namedAlone = new CappedTally<{ refused: number }>(AGENTS, () => ({ refused: 0 }));
  readonly allModels = noCalls();
  readonly allTools = noCalls();
  readonly tasks = { dispatched: 0, succeeded: 0, failed: 0, cancelled: 0, refused: 0 };
  credits = 0;

  add(entry: ReportEntryFields, timeline: Timeline): void {
    const { action, phase } = entry;
    const isShown = entry.agent !== undefined && (showsAgent(entry) || this.agents.has(entry.agent));
    const agent = entry.agent !== undefined && isShown ? this.agents.of(entry.agent) : undefined;
    const isRefused = refusalOf(entry) === "policy";
    if (isRefused) timeline.count("refused", Date.parse(entry.ts));
    if (agent) agent.refused += isRefused ? 1 : 0;
    else if (entry.agent !== undefined) this.#namedAlone.of(entry.agent).refused += isRefused ? 1 : 0;
    if (agent && entry.oversight) agent.decisions += 1;
    if (action === "model.call") {
      countCall(this.allModels, entry);
      this.models.add(modelKey(entry.model ?? "", entry.tier), entry);
      this.credits += phase === "outcome" ? (entry.credits ?? 0) : 0;
      if (phase === "intent") {
        timeline.count("model calls", Date.parse(entry.ts));
        if (agent) agent.modelCalls += 1;
      }
      if (entry.task === undefined) this.#countClient(entry, agent);
    } else if (action === "model.count") {
      countCall(this.allCounts, entry);
      this.counts.add(entry.model ?? "", entry);
      if (phase === "single" && entry.outcome === "succeeded") this.estimatedCounts += 1;
    } else if (action === "tool.call") {
      countCall(this.allTools, entry);
      this.tools.add(entry.tool ?? "a tool that does not exist", entry);
      if (phase === "intent") {
        timeline.count("tool calls", Date.parse(entry.ts));
        if (agent) agent.toolCalls += 1;
      }
    } else if (action === "task.dispatch") {
      this.#countTask(entry);
      if (agent && phase === "intent") agent.tasks += 1;
    }
  }

  /** Refusals of one agent by policy, including those before the first entry that shows it existed. */
  refusedOf(name: string): number {
    const before = this.#namedAlone.has(name) ? this.#namedAlone.of(name).refused : 0;
    return before + (this.agents.has(name) ? this.agents.of(name).refused : 0);
  }

  /** Number of names that occur only in refused or failed requests, up to the cap. */
  get unknownAgents(): number {
    return this.#namedAlone.sorted(() => 0).filter(([name]) => !this.agents.has(name)).length;
  }

  #countClient(entry: ReportEntryFields, agent: AgentTally | undefined): void {
    const { dialect } = entry.detail ?? {};
    countCall(this.allClients, entry);
    this.clients.add(typeof dialect === "string" ? dialect : "", entry);
    if (entry.phase !== "intent") return;
    if (agent) agent.clientCalls += 1;
    if (entry.agent === undefined) this.clientsWithoutAgent += 1;
  }

  #countTask({ phase, outcome }: ReportEntryFields): void {
    if (phase === "intent") this.tasks.dispatched += 1;
    else if (outcome === "denied") this.tasks.refused += 1;
    else if (outcome === "succeeded" || outcome === "failed" || outcome === "cancelled")
      this.tasks[outcome] += 1;
  }
}

function modelKey(model: string, tier: number | undefined): string {
  return JSON.stringify([model, tier ?? null]);
}

export function readModelKey(key: string): { readonly model: string; readonly tier: number | null } {
  const [model, tier] = JSON.parse(key) as [string, number | null];
  return { model, tier };
}
