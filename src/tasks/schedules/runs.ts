import type { Caller } from "../../access/caller.ts";
import { ADMIN_SCOPES } from "../../access/scopes.ts";
import type { Tokens } from "../../access/tokens.ts";
import type { Workspaces } from "../../access/workspaces.ts";
import { type Clock, timestamp } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import type { Ids } from "../../base/ids.ts";
import type { Log } from "../../base/log.ts";
import type { CallOrigin, Gate, Operation } from "../../gate/gate.ts";
import type { Detail } from "../../ledger/entry.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import type { Db } from "../../store/db.ts";
import type { DispatchResult } from "../queue/accept.ts";
import type { TaskService } from "../service.ts";
import { nextTime } from "./cron.ts";
import type { ScheduleEvidence } from "./evidence.ts";
import { dueSchedules, isOfAgent, nextDue, settleRun } from "./rows.ts";
import type { Schedule, ScheduleRunResult } from "./schedule.ts";

export interface ScheduleRunsParts {
  readonly db: Db;
  readonly ledger: Ledger;
  readonly gate: Pick<Gate, "perform">;
  readonly tokens: Pick<Tokens, "callerOf">;
  readonly workspaces: Pick<Workspaces, "get">;
  readonly tasks: Pick<TaskService, "dispatch">;
  readonly evidence: Pick<ScheduleEvidence, "isProven">;
  readonly nodes: Pick<Nodes, "leases" | "bus">;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** A schedule that is due. */
type DueSchedule = Schedule & { readonly nextAt: number };

/**
 * A time further in the past than this counts as missed: the process was not running, or the clock was set. Cron's
 * own resolution is a minute.
 */
const MISSED_AFTER_MS = 60_000;
/** Maximum number of schedules whose tasks are dispatched concurrently, sharing syncs. */
const AT_ONCE = 16;
/** The longest time between two checks, so that a change of the clock is noticed. */
const LOOK_MS = 30_000;
const RETRY_MS = 5_000;
const DISPATCH: Operation = { action: "task.dispatch", scope: "tasks:write", counted: true };
/** The row contradicts the ledger, so nothing is dispatched in anyone's name. */
const CHANGED = "schedule_changed";
/** Temporary failures unrelated to the schedule. Its time is tried again until it counts as missed. */
const PASSING = new Set(["ledger_unavailable", "draining"]);
/** Permanent failures: the schedule is paused until someone changes it. */
const LASTING = new Set(["invalid_token", "agent_not_found", CHANGED]);
const MISSED = "missed";
/** The lease of the node that dispatches. */
const LEASE = "schedules";
/** The topic of messages to that node: a schedule was created or changed on another one. */
const CHANGED_ELSEWHERE = "schedules.changed";

/**
 * Dispatches scheduled tasks at their times, once each: the result of a due time and the task that it created are
 * written in one transaction, if the schedule is still due at that time. Each dispatch passes the gate with the current
 * rights of the schedule's actor.
 *
 * One node at a time dispatches. If another one takes over while a dispatch is under way, one of the two transactions
 * finds that the schedule is no longer due.
 */
export class ScheduleRuns {
  readonly #parts: ScheduleRunsParts;
  #running: Promise<void> | null = null;
  #isStale = false;
  #isStopped = true;
  #cancelLook = () => {};
  #end = () => {};

  constructor(parts: ScheduleRunsParts) {
    this.#parts = parts;
  }

  /** Handles missed times, and runs due schedules from now on. MUST follow the start of the tasks. */
  start(): void {
    const { leases, bus } = this.#parts.nodes;
    const ignoreChanges = bus.listen(CHANGED_ELSEWHERE, () => this.#wake());
    const ignoreMissed = bus.missed.listen(() => this.#wake());
    const giveUp = leases.hold(LEASE, () => {
      this.#isStopped = false;
      this.#wake();
      return () => this.#pause();
    });
    this.#end = () => {
      ignoreChanges();
      ignoreMissed();
      giveUp();
    };
  }

  /**
   * Records all times until then as missed, whatever their schedules say: another server may have run them. MUST precede
   * `start`.
   */
  async skip(until: number): Promise<void> {
    const { db } = this.#parts;
    for (;;) {
      const due = (await dueSchedules(db, until, AT_ONCE)).filter(isDue);
      if (due.length === 0) return;
      for (const schedule of due) {
        const scheduled = timestamp(schedule.nextAt);
        await this.#refuse(schedule, MISSED, { schedule: schedule.id, scheduled_at: scheduled, missed: 1 });
      }
    }
  }

  /** Resolves when nothing is being dispatched any more. */
  async stop(): Promise<void> {
    this.#end();
    this.#end = () => {};
    while (this.#running) await this.#running;
  }

  /** Checks for due schedules now, because one may have become due. If another node dispatches, that one checks. */
  wake(): void {
    if (this.#isStopped) this.#parts.nodes.bus.send(CHANGED_ELSEWHERE, {});
    else this.#wake();
  }

  #wake(): void {
    if (this.#isStopped) return;
    this.#isStale = true;
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
      if (this.#isStale) this.#wake();
    });
  }

  #pause(): void {
    this.#isStopped = true;
    this.#cancelLook();
  }

  async #run(): Promise<void> {
    const { db, clock, log } = this.#parts;
    this.#cancelLook();
    let wait = LOOK_MS;
    try {
      do {
        this.#isStale = false;
        const due = (await dueSchedules(db, clock.now(), AT_ONCE)).filter(isDue);
        const done = await Promise.all(due.map((schedule) => this.#runOne(schedule)));
        if (done.includes(false)) {
          wait = RETRY_MS;
          break;
        }
        if (due.length > 0) this.#isStale = true;
        else {
          const next = await nextDue(db);
          if (next !== null) wait = Math.min(Math.max(next - clock.now(), 0), LOOK_MS);
        }
      } while (this.#isStale && !this.#isStopped);
    } catch (error) {
      this.#isStale = false;
      wait = RETRY_MS;
      log.warn("due schedules will be checked again", { error });
    }
    if (!this.#isStopped) this.#cancelLook = clock.after(wait, () => this.#wake());
  }

  /** @returns false if it must be retried later */
  async #runOne(schedule: DueSchedule): Promise<boolean> {
    try {
      return await this.#dispatch(schedule);
    } catch (error) {
      this.#parts.log.warn("a schedule will be tried again", { schedule: schedule.id, error });
      return false;
    }
  }

  async #dispatch(schedule: DueSchedule): Promise<boolean> {
    const { clock, gate, ids, tasks, evidence } = this.#parts;
    const { id, nextAt: at, agent, prompt, tier, tools, metadata } = schedule;
    if (!(await evidence.isProven(schedule))) {
      return this.#settle(schedule, { at, task: null, code: CHANGED });
    }
    const isMissed = clock.now() - at > MISSED_AFTER_MS;
    const detail: Detail = { schedule: id, scheduled_at: timestamp(at), ...(isMissed ? { missed: 1 } : {}) };
    if (isMissed && schedule.missed === "skip") return this.#refuse(schedule, MISSED, detail);
    const caller = await this.#callerOf(schedule);
    if (!caller) return this.#refuse(schedule, "invalid_token", detail);
    const request = { agent, prompt, tools, metadata, ...(tier === null ? {} : { tier }) };
    const origin: CallOrigin = {
      requestId: ids("req"),
      channel: "system",
      credential: { kind: "none" },
      source: "schedule",
    };
    const answer = await gate.perform<DispatchResult>(
      DISPATCH,
      origin,
      { caller, limit: null },
      async (call) => {
        call.about({ agent, detail });
        return tasks.dispatch(call, request, `schedule:${id}:${at}`, async (tx, task) => {
          if (!(await isOfAgent(tx, schedule, task))) {
            throw new Problem("agent_not_found", `The scheduled agent ${agent} is archived.`);
          }
          const settled = await settleRun(tx, schedule, { at, task, code: null }, this.#then(schedule, null));
          if (!settled) throw new Problem("not_found", "The schedule has since been changed or deleted.");
        });
      },
    );
    if (!answer.ok) {
      const { code } = answer.problem;
      return PASSING.has(code) ? false : this.#settle(schedule, { at, task: null, code });
    }
    // This time already had its task before the clock was set back.
    if (answer.value.replayed) return this.#settle(schedule, { at, task: answer.value.id, code: null });
    return true;
  }

  /** Records that no task was made, and why. */
  async #refuse(schedule: DueSchedule, code: string, detail: Detail): Promise<boolean> {
    const { db, ledger } = this.#parts;
    const { workspaceId, agent, runsAs, nextAt: at } = schedule;
    await db.tx(workspaceId, async (tx) => {
      const settled = await settleRun(tx, schedule, { at, task: null, code }, this.#then(schedule, code));
      if (!settled) return;
      await ledger.append(tx, workspaceId, {
        phase: "single",
        action: "task.dispatch",
        outcome: code === MISSED ? "cancelled" : "denied",
        code,
        channel: "system",
        actor: runsAs,
        agent,
        detail,
      });
    });
    return true;
  }

  async #settle(schedule: DueSchedule, last: ScheduleRunResult): Promise<boolean> {
    await this.#parts.db.tx(null, (tx) => settleRun(tx, schedule, last, this.#then(schedule, last.code)), {
      turnOf: schedule.workspaceId,
    });
    return true;
  }

  /** The state after this time. Other times that were also missed are skipped. */
  #then({ cron, timezone, nextAt: at }: DueSchedule, code: string | null) {
    const now = this.#parts.clock.now();
    const next = nextTime(cron, timezone, now - at > MISSED_AFTER_MS ? now : at);
    const ends = next === null || (code !== null && LASTING.has(code));
    return ends
      ? ({ status: "paused", nextAt: null } as const)
      : ({ status: "active", nextAt: next } as const);
  }

  /**
   * Undefined if the token is no longer valid. A `user:` actor is a person with access to this machine's data
   * directory, and remains valid.
   */
  async #callerOf({ workspaceId, runsAs }: Schedule): Promise<Caller | undefined> {
    const { tokens, workspaces } = this.#parts;
    const [kind, name = ""] = split(runsAs);
    if (kind === "token") return tokens.callerOf(workspaceId, name);
    if (kind !== "user") return undefined;
    return {
      workspaceId,
      workspace: workspaces.get(workspaceId).name,
      actor: runsAs,
      name,
      agent: null,
      scopes: ADMIN_SCOPES,
      toolsMode: "all",
      person: name,
      role: null,
    };
  }
}

function isDue(schedule: Schedule): schedule is DueSchedule {
  return schedule.nextAt !== null;
}

/** `token:<id>` or `user:<name>`, at the first colon. */
function split(actor: string): readonly [kind: string, name: string] {
  const colon = actor.indexOf(":");
  return [actor.slice(0, colon), actor.slice(colon + 1)];
}
