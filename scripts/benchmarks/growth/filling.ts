import type { Agent } from "../../../src/access/agents.ts";
import { DEFAULT_WORKSPACE } from "../../../src/access/workspaces.ts";
import { createIds, type Ids, systemRandom } from "../../../src/base/ids.ts";
import { silentLog } from "../../../src/base/log.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { type Evidence, openEvidence } from "../../../src/gateway/evidence.ts";
import { type GateParts, openGate } from "../../../src/gateway/gate.ts";
import type { Platform } from "../../../src/gateway/platform.ts";
import { openStore, type Store } from "../../../src/gateway/store.ts";
import { AGENT_DEFAULTS } from "../../../src/http/agent-body.ts";
import { createMetrics } from "../../../src/http/metrics.ts";
import type { EntryDraft } from "../../../src/ledger/entry.ts";
import { SetClock } from "../ledger/entries.ts";
import type { OpenJob, WriteJob } from "./jobs.ts";
import { agentName, scopeOf } from "./size.ts";
import { ACTOR, TaskWriter } from "./task-writer.ts";

/** Tasks in one transaction. */
const AT_ONCE = 64;
const TASK_MS = 500;

/**
 * A data directory that is filled by the program's own parts, without its doors: the store, the ledger with its
 * checkpoints, the history for the next start, and the statistics. Only the models are left out, and the clock is set.
 */
export class Filling {
  readonly #clock: SetClock;
  readonly #store: Store;
  readonly #evidence: Evidence;
  readonly #gate: GateParts;
  readonly #workspaceId: number;
  readonly #agents: readonly Agent[];
  readonly #ids: Ids;
  readonly #writer: TaskWriter;
  #now: number;
  #tasks = 0;
  #others = 0;

  private constructor(
    clock: SetClock,
    platform: Platform,
    store: Store,
    evidence: Evidence,
    gate: GateParts,
    agents: readonly Agent[],
    startsAt: number,
  ) {
    this.#clock = clock;
    this.#store = store;
    this.#evidence = evidence;
    this.#gate = gate;
    this.#workspaceId = defaultWorkspace(evidence);
    this.#agents = agents;
    this.#now = startsAt;
    this.#ids = platform.ids;
    const { ledger } = evidence.ledgers;
    this.#writer = new TaskWriter({ ledger, budgets: gate.budgets, clock, ids: platform.ids });
  }

  static async open({ dataDir, agents: count, startsAt }: OpenJob): Promise<Filling> {
    const { config } = loadConfig({ flags: { data: dataDir }, env: {}, cwd: dataDir });
    const clock = new SetClock();
    clock.set(startsAt);
    const ids = createIds(clock, systemRandom);
    const platform: Platform = { clock, random: systemRandom, ids, log: silentLog };
    const store = await openStore(config, platform);
    const evidence = await openEvidence(config, platform, store, createMetrics(), {
      replaceLostKey: false,
      acceptChanged: false,
    });
    const gate = await openGate(config, platform, store, evidence);
    evidence.ledgers.checkpoints.start();
    const workspaceId = defaultWorkspace(evidence);
    const agents: Agent[] = [];
    await store.db.tx(workspaceId, async (tx) => {
      for (let index = 0; index < count; index++) {
        const fields = {
          ...AGENT_DEFAULTS,
          owner: "benchmarks@gatehouse.example",
          memoryScope: [scopeOf(index)],
        };
        agents.push(await gate.agents.create(tx, workspaceId, agentName(index), fields));
      }
    });
    return new Filling(clock, platform, store, evidence, gate, agents, startsAt);
  }

  /** @returns the id of the first of these tasks */
  async write({ tasks, others }: WriteJob): Promise<string | null> {
    let first: string | null = null;
    for (let left = tasks, rest = others; left > 0 || rest > 0; ) {
      const count = Math.min(AT_ONCE, left);
      const beside = left > 0 ? Math.ceil((rest * count) / left) : Math.min(rest, AT_ONCE);
      const [id] = await Promise.all([this.#writeTasks(count), this.#writeOthers(beside)]);
      first ??= id;
      left -= count;
      rest -= beside;
    }
    // What the program does every few seconds.
    await this.#gate.usageSlots.keepHouse();
    await this.#evidence.histories.keepHouse();
    return first;
  }

  async close(): Promise<void> {
    await this.#evidence.ledgers.checkpoints.stop();
    await this.#store.close();
  }

  async #writeTasks(count: number): Promise<string | null> {
    return this.#store.db.tx(this.#workspaceId, async (tx) => {
      let first: string | null = null;
      for (let index = 0; index < count; index++) {
        this.#now += TASK_MS;
        this.#clock.set(this.#now);
        const agent = this.#agents[this.#tasks++ % this.#agents.length];
        if (!agent) throw new Error("there is no agent");
        const id = await this.#writer.write(tx, this.#workspaceId, agent);
        first ??= id;
      }
      return first;
    });
  }

  async #writeOthers(count: number): Promise<void> {
    const { ledger } = this.#evidence.ledgers;
    const drafts = Array.from({ length: count }, () => {
      const index = this.#others++;
      return read(index, agentName(index % this.#agents.length), this.#ids("req"));
    });
    await Promise.all(drafts.map((draft) => ledger.record(this.#workspaceId, draft)));
  }
}

function defaultWorkspace({ workspaces }: Evidence): number {
  const found = workspaces.find(DEFAULT_WORKSPACE);
  if (!found) throw new Error("the data directory has no workspace");
  return found.id;
}

const READS = ["task.read", "agent.read", "task.list", "vault.search", "ledger.read"] as const;

/** The entry of a read. */
function read(index: number, agent: string, requestId: string): EntryDraft {
  const action = READS[index % READS.length] ?? "task.read";
  return {
    ...{ phase: "single", action, outcome: "succeeded", channel: "rest", actor: ACTOR },
    ...{ requestId, agent },
  };
}
