import type { Agents } from "../../access/agents.ts";
import type { Caller } from "../../access/caller.ts";
import type { Clock } from "../../base/clock.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import type { Ids } from "../../base/ids.ts";
import type { ToolRegistry } from "../../connectors/registry.ts";
import type { Call } from "../../gate/call.ts";
import type { ModelGateway } from "../../models/gateway.ts";
import type { Db, Sql, Tx } from "../../store/db.ts";
import type { Forgetting } from "../../store/forgetting.ts";
import { cronProblem, isTimezone, nextTime } from "./cron.ts";
import { toolsOf } from "./evidence.ts";
import {
  countSchedules,
  deleteSchedule,
  findSchedule,
  insertSchedule,
  listSchedules,
  type SchedulePage,
  updateSchedule,
} from "./rows.ts";
import { SCHEDULE_LIMIT, type Schedule, type ScheduleFields } from "./schedule.ts";

export interface SchedulesParts {
  readonly db: Db;
  readonly agents: Agents;
  readonly modelGateway: Pick<ModelGateway, "tiers">;
  readonly tools: Pick<ToolRegistry, "find">;
  readonly forgetting: Forgetting;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Called when a schedule may have become due. */
  changed(): void;
}

/**
 * Creates, shows and changes schedules for callers. A token that acts as an agent has access only to that agent's
 * schedules.
 */
export class Schedules {
  readonly #parts: SchedulesParts;

  constructor(parts: SchedulesParts) {
    this.#parts = parts;
  }

  /** @throws Problem with any refusal that its task would meet now, and 409 `schedule_limit` */
  async create(call: Call, fields: ScheduleFields): Promise<Schedule> {
    const { caller } = call;
    const { clock, ids } = this.#parts;
    call.about({ agent: fields.agent });
    const id = ids("sch");
    const now = clock.now();
    return this.#commit(call, id, async (tx) => {
      const { nextAt, agentId } = await this.#check(tx, caller, fields, now);
      if ((await countSchedules(tx, caller.workspaceId)) >= SCHEDULE_LIMIT) {
        throw new Problem(
          "schedule_limit",
          `A workspace can have at most ${SCHEDULE_LIMIT} schedules. Delete one first.`,
        );
      }
      const schedule: Schedule = {
        ...fields,
        workspaceId: caller.workspaceId,
        id,
        agentId,
        version: 1,
        createdBy: caller.actor,
        runsAs: caller.actor,
        createdAt: now,
        updatedAt: now,
        nextAt: fields.status === "active" ? nextAt : null,
        last: null,
      };
      await insertSchedule(tx, schedule);
      return schedule;
    });
  }

  /** @throws Problem 404 `not_found` */
  async get(call: Call, id: string): Promise<Schedule> {
    const schedule = await this.#find(this.#parts.db, call.caller, id);
    call.about({ agent: schedule.agent, detail: { schedule: schedule.id } });
    return schedule;
  }

  /** Newest first, before the id `before`. Fewer than `limit` if their texts would be too long for one response. */
  list({ workspaceId, agent }: Caller, limit: number, before: string | undefined): Promise<SchedulePage> {
    return listSchedules(this.#parts.db, workspaceId, limit, before, agent?.id);
  }

  /**
   * Changes the given fields. From then on it runs with the rights of the actor that changed it, so no prompt ever
   * runs with another person's rights.
   * @throws Problem 404 `not_found`, and those of `create`
   */
  async change(call: Call, id: string, change: Partial<ScheduleFields>): Promise<Schedule> {
    const { caller } = call;
    const now = this.#parts.clock.now();
    return this.#commit(call, id, async (tx) => {
      const before = await this.#find(tx, caller, id);
      call.about({ agent: before.agent });
      const fields: ScheduleFields = { ...before, ...change };
      const { nextAt: fresh, agentId } = await this.#check(tx, caller, fields, now);
      const isSameTime =
        before.status === "active" && before.cron === fields.cron && before.timezone === fields.timezone;
      const after: Schedule = {
        ...before,
        ...fields,
        agentId,
        version: before.version + 1,
        runsAs: caller.actor,
        updatedAt: now,
        nextAt: fields.status === "paused" ? null : isSameTime ? before.nextAt : fresh,
      };
      await updateSchedule(tx, after);
      return after;
    });
  }

  /**
   * Deletes a schedule. Tasks that it has dispatched continue. The prompt remains as the payload of the entries that
   * record the request, to be erased like any other.
   * @throws Problem 404 `not_found`
   */
  async delete(call: Call, id: string): Promise<void> {
    const { forgetting } = this.#parts;
    await call.commit(async (tx) => {
      const schedule = await this.#find(tx, call.caller, id);
      call.about({ agent: schedule.agent, detail: { schedule: id } });
      deleteSchedule(tx, schedule.workspaceId, id);
    });
    forgetting.deleted();
    forgetting.forgetSoon();
  }

  /**
   * Writes the change and its entry in one transaction. The entry names the times, the agent and the tools; the
   * prompt is its payload.
   */
  #commit(call: Call, id: string, work: (tx: Tx) => Promise<Schedule>): Promise<Schedule> {
    return call.commit(async (tx, record) => {
      const schedule = await work(tx);
      const { agent, tier, cron, timezone, missed, status, version, prompt } = schedule;
      call.about({ agent, ...(tier === null ? {} : { tier }) });
      const tools = toolsOf(schedule);
      const detail = { schedule: id, cron, timezone, missed, status, version, tools };
      await record({ input: prompt, detail });
      tx.onCommit(() => this.#parts.changed());
      return schedule;
    });
  }

  async #find(sql: Sql, { workspaceId, agent }: Caller, id: string): Promise<Schedule> {
    const schedule = await findSchedule(sql, workspaceId, id);
    if (!schedule || (agent && agent.id !== schedule.agentId)) {
      throw new Problem("not_found", `There is no schedule ${JSON.stringify(id)}.`);
    }
    return schedule;
  }

  /** @returns its first time after `now`, and the agent that it names */
  async #check(
    sql: Sql,
    caller: Caller,
    fields: ScheduleFields,
    now: number,
  ): Promise<{ readonly nextAt: number; readonly agentId: number }> {
    const { agents, modelGateway, tools } = this.#parts;
    const problem = cronProblem(fields.cron);
    if (problem !== undefined) throw invalidField("/cron", problem);
    if (!isTimezone(fields.timezone)) {
      throw invalidField("/timezone", "must be a time zone of the IANA database, such as Europe/Berlin");
    }
    const next = nextTime(fields.cron, fields.timezone, now);
    if (next === null) throw invalidField("/cron", "describes a time that never occurs");
    if (caller.agent && caller.agent.name !== fields.agent) {
      throw new Problem(
        "agent_forbidden",
        `This token acts as ${caller.agent.name} and may only schedule tasks of that agent.`,
      );
    }
    const agent = await agents.get(caller.workspaceId, fields.agent, sql);
    modelGateway.tiers.route(agent.tierPolicy, fields.tier ?? modelGateway.tiers.lowest(agent.tierPolicy));
    tools.find(caller.workspaceId, fields.tools, { tools: agent.tools, scopes: caller.scopes });
    return { nextAt: next, agentId: agent.id };
  }
}
