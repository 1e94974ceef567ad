import type { Clock } from "../base/clock.ts";
import { invalidField, Problem } from "../base/errors.ts";
import type { RandomSource } from "../base/ids.ts";
import { Signal } from "../base/signal.ts";
import type { Bus } from "../nodes/bus.ts";
import { ALONE } from "../nodes/local-nodes.ts";
import type { Db, Sql, Tx } from "../store/db.ts";
import { fitting } from "../store/page-bytes.ts";
import { AgentCache } from "./agent-cache.ts";
import { isRecordedName } from "./agent-names.ts";
import { AGENT_COLUMNS, type AgentRow, agentFrom, fieldValues, TEXT_BYTES } from "./agent-rows.ts";
import { RightsRevision } from "./grant.ts";
import { type Halt, Halts } from "./halts.ts";
import type { TierPolicy } from "./tier-policy.ts";
import { isTrusted } from "./trust.ts";
import type { Workspaces } from "./workspaces.ts";

export type AgentStatus = "active" | "stopped";

/** A named agent and its rights. */
export interface Agent {
  readonly id: number;
  readonly name: string;
  readonly owner: string;
  readonly description: string | null;
  readonly instructions: string | null;
  readonly memoryScope: readonly string[];
  readonly tierPolicy: TierPolicy;
  /** Globs of the tools it may use. */
  readonly tools: readonly string[];
  /** Globs of the tools that need a person's approval. Null: the tools that their connector marks as destructive. */
  readonly approvals: readonly string[] | null;
  /** How many different people MUST approve such a call. */
  readonly approvalsRequired: number;
  readonly maxSteps: number;
  /** Micro-credits per day. Null: no budget. */
  readonly creditsPerDay: number | null;
  /** Also `stopped` while its workspace is stopped. */
  readonly status: AgentStatus;
  /** Incremented by each change. */
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** The current state of an agent, which may be archived. */
export interface AgentRunState {
  readonly id: number;
  readonly name: string;
  readonly status: AgentStatus | "archived";
  readonly version: number;
}

export type AgentFields = Omit<Agent, "id" | "name" | "status" | "version" | "createdAt" | "updatedAt">;

export interface Agents {
  /** Emits the workspace in which an agent was changed, created or archived, on whatever node. */
  readonly changed: Signal<number>;
  /**
   * Emits the agent once its change is on disk or its stop takes effect. Not emitted for each agent of a stopped
   * workspace.
   */
  readonly agentChanged: Signal<{ readonly workspaceId: number; readonly id: number }>;
  /** Counts changes to agents from the moment when a transaction writes one. Halts are not counted. */
  readonly revision: RightsRevision;
  /** Makes all agents be read again before they are used: changes on other nodes may have been missed. */
  outdate(): void;
  /** The agent that now has this agent's name; if there is none, this agent itself. It may be archived. */
  standing(workspaceId: number, id: number): Promise<AgentRunState | undefined>;
  /** @throws Problem 404 `agent_not_found` */
  get(workspaceId: number, name: string, sql?: Sql): Promise<Agent>;
  /** The agent as last read, possibly long ago, for use when the store cannot be read. */
  lastKnown(workspaceId: number, name: string): Agent | undefined;
  byId(workspaceId: number, id: number, sql?: Sql): Promise<Agent | undefined>;
  /** Whether the agent may be given work, as this transaction sees it. False for an archived agent. */
  isActive(tx: Tx, workspaceId: number, id: number): Promise<boolean>;
  /** Sorted by name, after the name `after`. Fewer than `limit` if their texts would be too long for one response. */
  list(workspaceId: number, limit: number, after: string | undefined): Promise<AgentPage>;
  /** @throws Problem 409 `agent_exists`, 422 `validation_failed` if the ledger would leave out the name */
  create(tx: Tx, workspaceId: number, name: string, fields: AgentFields): Promise<Agent>;
  /** Applies the changes that `change` returns for the agent as this transaction sees it. */
  update(
    tx: Tx,
    workspaceId: number,
    name: string,
    change: (agent: Agent) => Partial<AgentFields>,
  ): Promise<Agent>;
  /** Resumes a stopped agent in the store. @throws Problem 409 `agent_stopped` while its workspace is stopped */
  resume(tx: Tx, workspaceId: number, name: string): Promise<Agent>;
  /** Stops the agent in the store. Undefined if it has been archived. */
  stop(tx: Tx, workspaceId: number, id: number): Promise<Agent | undefined>;
  /**
   * Stops the agent immediately, for every reader and in every transaction, whatever the store contains. The stop
   * takes effect before it is written, and even if it cannot be written.
   */
  halt(workspaceId: number, id: number): Halt;
  /** The agent's current halt. */
  haltOf(workspaceId: number, id: number): Halt | undefined;
  /** Ends the agent and frees its name. Its row stays for the history that refers to it. */
  archive(tx: Tx, workspaceId: number, name: string): Promise<Agent>;
}

/** One page of a list. */
export interface AgentPage {
  readonly agents: readonly Agent[];
  readonly more: boolean;
}

const TOPIC = "agent";

export function createAgents(
  db: Db,
  clock: Clock,
  workspaces: Pick<Workspaces, "isStopped" | "isStoppedIn" | "changed">,
  random: RandomSource,
  bus: Bus = ALONE.bus,
): Agents {
  const remembered = new AgentCache();
  const changed = new Signal<number>();
  const agentChanged = new Signal<{ readonly workspaceId: number; readonly id: number }>();
  const revision = new RightsRevision(bus);
  const halts = new Halts<string>((key) => {
    const workspaceId = workspaceOf(key);
    changed.emit(workspaceId);
    agentChanged.emit({ workspaceId, id: Number(key.slice(idKeyPrefix(workspaceId).length)) });
  });
  /** Incremented by each change in a workspace. Data read before a change is not cached after it. */
  const generations = new Map<number, number>();
  let outdated = 0;
  const generationOf = (workspaceId: number): number => (generations.get(workspaceId) ?? 0) + outdated;

  function hasChanged(workspaceId: number, id: number): void {
    generations.set(workspaceId, (generations.get(workspaceId) ?? 0) + 1);
    changed.emit(workspaceId);
    agentChanged.emit({ workspaceId, id });
  }

  /** Reports a change once it is on disk. */
  function reportChange(tx: Tx, workspaceId: number, id: number): void {
    tx.onCommit(() => {
      hasChanged(workspaceId, id);
      bus.send(TOPIC, { workspace: workspaceId, agent: id }, { isUrgent: true });
    });
  }

  bus.listen(TOPIC, ({ workspace, agent }) => {
    if (typeof workspace !== "number" || typeof agent !== "number") return;
    revision.changed();
    hasChanged(workspace, agent);
  });

  workspaces.changed.listen((workspaceId) => changed.emit(workspaceId));

  function isHalted(workspaceId: number, id: number): boolean {
    return workspaces.isStopped(workspaceId) || halts.has(idKey(workspaceId, id));
  }

  function asHalted(workspaceId: number, agent: Agent): Agent {
    return isHalted(workspaceId, agent.id) ? { ...agent, status: "stopped" } : agent;
  }

  /** Reads an agent as stored. A transaction neither uses nor fills the cache, since it may see uncommitted data. */
  async function find(
    workspaceId: number,
    column: "name" | "id",
    value: string | number,
    sql: Sql,
  ): Promise<Agent | undefined> {
    const known = sql === db ? remembered.get(cacheKey(workspaceId, column, value)) : undefined;
    const generation = generationOf(workspaceId);
    if (known?.generation === generation && isTrusted(bus)) return known.agent;
    const row = await (sql === db ? db.urgent : sql).get<AgentRow>(
      `SELECT ${AGENT_COLUMNS} FROM agents WHERE workspace_id = $1 AND ${column} = $2 AND archived_at IS NULL`,
      [workspaceId, value],
    );
    // A row that somebody else wrote does not count.
    const agent = row && sql.seals.fits("agents", row) ? agentFrom(row) : undefined;
    if (agent && sql === db && generation === generationOf(workspaceId)) {
      const keys = [cacheKey(workspaceId, "name", agent.name), cacheKey(workspaceId, "id", agent.id)];
      remembered.add(keys, { agent, generation });
    }
    return agent;
  }

  async function get(workspaceId: number, name: string, sql: Sql): Promise<Agent> {
    const agent = await find(workspaceId, "name", name, sql);
    if (!agent) throw new Problem("agent_not_found", `There is no agent named ${JSON.stringify(name)}.`);
    return agent;
  }

  async function write(tx: Tx, workspaceId: number, agent: Agent): Promise<Agent> {
    const next: Agent = { ...agent, version: agent.version + 1, updatedAt: clock.now() };
    revision.change(tx);
    reportChange(tx, workspaceId, agent.id);
    await tx.seals.change(tx, "agents", { id: next.id }, () =>
      tx.run(
        `UPDATE agents SET owner = $3, description = $4, instructions = $5, memory_scope = $6, tier_policy = $7,
           tools = $8, approvals = $9, approvals_required = $10, max_steps = $11, credits_per_day = $12,
           status = $13, version = $14, updated_at = $15
         WHERE workspace_id = $1 AND id = $2`,
        [workspaceId, next.id, ...fieldValues(next), next.status, next.version, next.updatedAt],
      ),
    );
    return next;
  }

  return {
    changed,
    agentChanged,
    revision,
    outdate() {
      outdated += 1;
      revision.changed();
    },
    async standing(workspaceId, id) {
      const row = await db.get<AgentRow & { readonly archived_at: number | null }>(
        `SELECT ${AGENT_COLUMNS}, archived_at FROM agents WHERE workspace_id = $1
           AND name = (SELECT name FROM agents WHERE workspace_id = $1 AND id = $2)
         ORDER BY archived_at IS NULL DESC, id = $2 DESC LIMIT 1`,
        [workspaceId, id],
      );
      if (!row) return undefined;
      const { name, status, version } = asHalted(workspaceId, agentFrom(row));
      return { id: row.id, name, status: row.archived_at === null ? status : "archived", version };
    },
    halt: (workspaceId, id) => halts.halt(idKey(workspaceId, id)),
    haltOf: (workspaceId, id) => halts.get(idKey(workspaceId, id)),
    async get(workspaceId, name, sql = db) {
      return asHalted(workspaceId, await get(workspaceId, name, sql));
    },
    lastKnown(workspaceId, name) {
      const known = remembered.get(cacheKey(workspaceId, "name", name));
      return known && asHalted(workspaceId, known.agent);
    },
    async byId(workspaceId, id, sql = db) {
      const agent = await find(workspaceId, "id", id, sql);
      return agent && asHalted(workspaceId, agent);
    },
    async isActive(tx, workspaceId, id) {
      if (halts.has(idKey(workspaceId, id))) return false;
      const isStopped = workspaces.isStoppedIn(tx, workspaceId);
      if (typeof isStopped === "boolean" ? isStopped : await isStopped) return false;
      return (await find(workspaceId, "id", id, tx))?.status === "active";
    },
    async list(workspaceId, limit, after) {
      const named = "FROM agents WHERE workspace_id = $1 AND archived_at IS NULL AND name > $2";
      for (let from = after ?? ""; ; ) {
        // SQLite knows the sizes without reading the texts.
        const sizes = await db.all<{ name: string; bytes: number }>(
          `SELECT name, ${TEXT_BYTES} AS bytes ${named} ORDER BY name LIMIT $3`,
          [workspaceId, from, limit + 1],
        );
        const shown = fitting(sizes, limit, ({ bytes }) => bytes);
        const last = shown.at(-1);
        if (!last) return { agents: [], more: false };
        const rows = await db.all<AgentRow>(`SELECT ${AGENT_COLUMNS} ${named} AND name <= $3 ORDER BY name`, [
          workspaceId,
          from,
          last.name,
        ]);
        const agents = rows
          .filter((row) => db.seals.fits("agents", row))
          .map((row) => asHalted(workspaceId, agentFrom(row)));
        const more = shown.length < sizes.length;
        // Skips a page on which no row counts: without a last item, there would be no cursor to continue from.
        if (agents.length > 0 || !more) return { agents, more };
        from = last.name;
      }
    },
    async create(tx, workspaceId, name, fields) {
      if (!isRecordedName(name)) {
        throw invalidField("/name", "must not look like a token: the ledger leaves such names out");
      }
      const now = Math.max(clock.now(), await afterArchived(tx, workspaceId, name));
      const row = await tx.get<AgentRow>(
        `INSERT INTO agents (id, workspace_id, name, owner, description, instructions, memory_scope, tier_policy, tools,
           approvals, approvals_required, max_steps, credits_per_day, status, version, created_at, updated_at)
         VALUES ($14, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 'active', 1, $13, $13)
         ON CONFLICT (workspace_id, name) WHERE archived_at IS NULL DO NOTHING RETURNING ${AGENT_COLUMNS}`,
        [workspaceId, name, ...fieldValues(fields), now, createAgentId(random)],
      );
      if (!row) throw new Problem("agent_exists", `An agent named ${name} already exists.`);
      await tx.seals.seal(tx, "agents", { id: row.id });
      reportChange(tx, workspaceId, row.id);
      return asHalted(workspaceId, agentFrom(row));
    },
    async update(tx, workspaceId, name, change) {
      const agent = await get(workspaceId, name, tx);
      return asHalted(workspaceId, await write(tx, workspaceId, { ...agent, ...change(agent) }));
    },
    async resume(tx, workspaceId, name) {
      const agent = await get(workspaceId, name, tx);
      if (workspaces.isStopped(workspaceId)) {
        throw new Problem("agent_stopped", "The whole workspace is stopped. Resume it first.");
      }
      return agent.status === "active" ? agent : write(tx, workspaceId, { ...agent, status: "active" });
    },
    async stop(tx, workspaceId, id) {
      const agent = await find(workspaceId, "id", id, tx);
      return agent?.status === "active" ? write(tx, workspaceId, { ...agent, status: "stopped" }) : agent;
    },
    async archive(tx, workspaceId, name) {
      // Also applies to an agent whose row somebody else wrote: archiving it frees its name.
      const row = await tx.get<AgentRow>(
        `SELECT ${AGENT_COLUMNS} FROM agents WHERE workspace_id = $1 AND name = $2 AND archived_at IS NULL`,
        [workspaceId, name],
      );
      if (!row) throw new Problem("agent_not_found", `There is no agent named ${JSON.stringify(name)}.`);
      const agent = agentFrom(row);
      const now = clock.now();
      revision.change(tx);
      reportChange(tx, workspaceId, agent.id);
      tx.write(
        "UPDATE agents SET archived_at = $3, updated_at = $3, seal = NULL WHERE workspace_id = $1 AND id = $2",
        [workspaceId, agent.id, now],
      );
      return agent;
    },
  };
}

/**
 * Random, so that deleting an agent's row cannot give its id to a later agent, which the old agent's tokens would
 * then act as. A counter in the file could be set back. 48 bits fit exactly in a JavaScript number.
 */
function createAgentId(random: RandomSource): number {
  const bytes = Buffer.alloc(6);
  random(bytes);
  return bytes.readUIntBE(0, bytes.length);
}

/**
 * The first millisecond after all earlier agents of this name, so work that began then cannot belong to one of them.
 */
async function afterArchived(tx: Tx, workspaceId: number, name: string): Promise<number> {
  const row = await tx.get<{ last: number | null }>(
    "SELECT max(archived_at) AS last FROM agents WHERE workspace_id = $1 AND name = $2",
    [workspaceId, name],
  );
  return row?.last == null ? 0 : row.last + 1;
}

function cacheKey(workspaceId: number, column: "name" | "id", value: string | number): string {
  return `${workspaceId}:${column}:${value}`;
}

function idKey(workspaceId: number, id: number): string {
  return cacheKey(workspaceId, "id", id);
}

function idKeyPrefix(workspaceId: number): string {
  return cacheKey(workspaceId, "id", "");
}

function workspaceOf(key: string): number {
  return Number(key.slice(0, key.indexOf(":")));
}
