import { type Clock, pause } from "../../../base/clock.ts";
import { Locks } from "../../../base/locks.ts";
import type { Log } from "../../../base/log.ts";
import { LedgerChanged } from "../../../ledger/ledger-changed.ts";
import type { BusMessage } from "../../../nodes/bus.ts";
import type { Nodes } from "../../../nodes/nodes.ts";
import { StoreUnavailable } from "../../../store/db.ts";
import type { ClaimedWork, OtherNodes } from "../claimed-work.ts";
import type { WorkKey } from "../claims.ts";
import { type ClaimOwner, DUE, RELEASED, type SharedClaims } from "./claim-rows.ts";
import { Differences } from "./differences.ts";

/** Asks the node that has a task to give it to the node `to`: `workspace`, `task`, `to`. */
const HAND_OVER = "tasks.hand_over";
/** The node `node` has taken a task: `workspace`, `task`, `node`. */
const TAKEN = "tasks.taken";
/** An agent, or a workspace if `agent` is null, was stopped: `workspace`, `agent`. */
const STOPPED = "tasks.stopped";

/** How many claims are taken over at once. For each group, the ledger is read from its oldest task on. */
const ADOPT_AT_ONCE = 1_024;
/** How long the node that has a task may take to give it away before it is taken by force. */
const HAND_OVER_MS = 700;
const LOOK_AGAIN_MS = 50;
/** How long after its message a stop may be written. */
const STOP_WRITTEN_MS = 1_000;
/** How long a resume waits for the ends of stopped tasks. */
const ENDS_MS = 3_000;
/** The key of the only lock: what this node takes over, it takes over one after the other. */
const TAKING = 0;

export interface SharedWorkParts {
  readonly claims: SharedClaims;
  readonly nodes: Pick<Nodes, "id" | "bus" | "beat" | "lost">;
  /** Whether an agent, or a workspace, has open tasks. */
  hasOpenTasks(workspaceId: number, agentId: number | null): Promise<boolean>;
  /** The workspaces and agents that are stopped, as the store has them. */
  stopped(): Promise<readonly { readonly workspaceId: number; readonly agentId: number | null }[]>;
  /** Whether an agent, or its workspace, is stopped, as the store has it. @throws StoreUnavailable */
  isStopped(workspaceId: number, agentId: number | null): Promise<boolean>;
  /** Ends the calls outside of tasks of a stopped agent, or of a stopped workspace. */
  endCalls(workspaceId: number, agentId: number | null): void;
  /** Keeps queued tasks from starting until the returned function is called, so that no agent gains by being first. */
  holdQueue(): () => void;
  /** Takes no more places of other nodes. */
  closeQueues(): void;
  /** Takes tasks that wait elsewhere while this node has nothing to do. */
  balance(): Promise<void>;
  /** Reports calls outside of tasks whose nodes have left. */
  reportLeft(): Promise<void>;
  readonly workspaces: { list(): readonly { readonly id: number }[] };
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * What nodes do with each other's tasks and background responses. Messages only make it quick: whatever they miss is found
 * in the store with the next beat, and what must never happen is prevented by the claims.
 */
export class SharedWork implements OtherNodes {
  readonly #parts: SharedWorkParts;
  readonly #kinds: ClaimedWork[] = [];
  readonly #locks = new Locks();
  /** What was taken over but could not be continued, because its ledger was changed. */
  readonly #refused = new Set<string>();
  /** Claims of this node that it does not know, and work that it has no claim on. */
  readonly #unknown: Differences;
  readonly #missing: Differences;
  /** Tasks that others have queued again and this node has not resumed yet. */
  readonly #due = new Map<string, WorkKey>();
  readonly #resuming = new Set<string>();
  #isServing = false;
  #beating: Promise<void> | null = null;
  #isBeatDue = false;
  /** Wakes those that wait for a task. */
  #moved = new AbortController();

  constructor(parts: SharedWorkParts) {
    const { nodes, clock } = parts;
    this.#parts = parts;
    this.#unknown = new Differences(clock);
    this.#missing = new Differences(clock);
    nodes.lost.listen(() => this.#forgetAll());
    nodes.beat.listen(() => this.#beat());
    nodes.bus.missed.listen(() => this.#beat());
    nodes.bus.listen(RELEASED, () => {
      this.#wake();
      this.#beat();
    });
    nodes.bus.listen(TAKEN, (message) => {
      if (message.node !== nodes.id) this.#on(message, (work, key) => this.#forgetTaken(work, key));
    });
    nodes.bus.listen(DUE, (message) => {
      if (message.node === nodes.id) this.#on(message, (_, key) => this.#resume(key));
    });
    nodes.bus.listen(HAND_OVER, (message) => {
      const { to } = message;
      if (typeof to !== "string" || to === nodes.id) return;
      this.#on(message, (work, key) => work.handOver(key.workspaceId, key.id, to));
    });
    nodes.bus.listen(STOPPED, ({ workspace, agent }) => {
      if (typeof workspace !== "number" || (agent !== null && typeof agent !== "number")) return;
      void this.#endIfStopped(workspace, agent);
    });
  }

  /** Adds work of another kind. MUST precede `start`. */
  add(work: ClaimedWork): void {
    this.#kinds.push(work);
  }

  async start(): Promise<void> {
    const { workspaces } = this.#parts;
    for (const { id } of workspaces.list()) await this.#restore(id);
    this.#isServing = true;
    const resume = this.#parts.holdQueue();
    try {
      await this.#adoptAll();
    } finally {
      resume();
    }
  }

  close(): void {
    this.#isServing = false;
    this.#parts.closeQueues();
  }

  /** Nothing is continued while the ledger differs from the signed tree. It is reported by then. */
  async #restore(workspaceId: number): Promise<void> {
    const { claims } = this.#parts;
    try {
      for (const work of this.#kinds) await claims.restore(workspaceId, await work.openIds(workspaceId));
    } catch (error) {
      if (!(error instanceof LedgerChanged)) throw error;
    }
  }

  stop(): void {
    this.#isServing = false;
  }

  /** Takes tasks that have waited at another node since before `before`. @throws StoreUnavailable */
  async takeWaiting(nodeId: string, workspaceId: number, before: number, limit: number): Promise<void> {
    await this.#locks.run(TAKING, async () => {
      const keys = await this.#parts.claims.takeWaiting(nodeId, workspaceId, before, limit);
      for (const key of keys) this.#tellTaken(key);
      await this.#continue(keys);
    });
  }

  async bring(workspaceId: number, id: string): Promise<void> {
    const { claims, nodes, clock } = this.#parts;
    const key = { workspaceId, id };
    if (this.#workOf(id)?.knows(workspaceId, id)) return;
    const message = { workspace: workspaceId, task: id, to: nodes.id };
    nodes.bus.send(HAND_OVER, message, { isUrgent: true });
    const until = clock.monotonic() + HAND_OVER_MS;
    for (;;) {
      const owner = await claims.owner(key);
      if (!owner) return;
      const isLate = clock.monotonic() >= until;
      if (owner.nodeId === nodes.id || !owner.isAlive || isLate) {
        await this.#locks.run(TAKING, () => this.#takeOver(key, owner));
        return;
      }
      await pause(LOOK_AGAIN_MS, clock, this.#moved.signal).catch(() => {});
    }
  }

  tellStopped(workspaceId: number, agentId: number | null): void {
    this.#parts.nodes.bus.send(STOPPED, { workspace: workspaceId, agent: agentId }, { isUrgent: true });
  }

  async endFree(workspaceId: number, agentId: number | null): Promise<void> {
    try {
      const free = await this.#locks.run(TAKING, async () => {
        const keys = await this.#parts.claims.adoptStopped(workspaceId, agentId);
        await this.#continue(keys);
        return keys.length;
      });
      // They may have been taken over before the stop was stored.
      if (free > 0) await this.#endStopped(workspaceId, agentId);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    }
  }

  async endsWritten(workspaceId: number, agentId: number | null): Promise<void> {
    const { clock, hasOpenTasks, isStopped } = this.#parts;
    const until = clock.monotonic() + ENDS_MS;
    // The tasks of one that is not stopped go on.
    const areEnding = async () =>
      (await isStopped(workspaceId, agentId)) && (await hasOpenTasks(workspaceId, agentId));
    for (let isTold = false; await areEnding(); isTold = true) {
      if (!isTold) this.tellStopped(workspaceId, agentId);
      if (clock.monotonic() >= until) {
        throw new StoreUnavailable("the ends of stopped tasks cannot be written yet");
      }
      await pause(LOOK_AGAIN_MS, clock, new AbortController().signal);
    }
  }

  async #takeOver(key: WorkKey, owner: ClaimOwner): Promise<void> {
    const { claims, nodes } = this.#parts;
    const work = this.#workOf(key.id);
    if (!work || work.knows(key.workspaceId, key.id)) return;
    if (owner.nodeId !== nodes.id) {
      if (!(await claims.take(key, owner))) return;
      this.#tellTaken(key);
    }
    await this.#continue([key]);
  }

  #tellTaken({ workspaceId, id }: WorkKey): void {
    const { bus, id: node } = this.#parts.nodes;
    bus.send(TAKEN, { workspace: workspaceId, task: id, node }, { isUrgent: true });
  }

  /** The message may be late, and this node may have the claim again. */
  async #forgetTaken(work: ClaimedWork, key: WorkKey): Promise<void> {
    const owner = await this.#parts.claims.owner(key);
    if (owner?.nodeId !== this.#parts.nodes.id) work.forget(key.workspaceId, key.id);
  }

  /** Looks after everything that messages may have missed. One look follows another, and none runs beside another. */
  #beat(): void {
    if (!this.#isServing) return;
    this.#isBeatDue = true;
    this.#beating ??= this.#look().finally(() => {
      this.#beating = null;
    });
  }

  async #look(): Promise<void> {
    while (this.#isBeatDue) {
      this.#isBeatDue = false;
      try {
        await this.#adoptAll();
        await this.#parts.reportLeft();
        await this.#resumeDue();
        await this.#compare();
        await this.#endAllStopped();
        if (this.#isServing) await this.#parts.balance();
      } catch (error) {
        // It is tried again with the next beat.
        if (!(error instanceof StoreUnavailable)) {
          this.#parts.log.error("the tasks of this node cannot be compared with the store", { error });
        }
      }
    }
  }

  async #adoptAll(): Promise<void> {
    const { claims, log } = this.#parts;
    let adopted = 0;
    while (this.#isServing) {
      const count = await this.#locks.run(TAKING, async () => {
        const keys = await claims.adopt(ADOPT_AT_ONCE);
        await this.#continue(keys);
        return keys.length;
      });
      adopted += count;
      if (count < ADOPT_AT_ONCE) break;
    }
    if (adopted > 0) log.info("tasks of nodes that have left were taken over", { tasks: adopted });
  }

  /** Continues what this node has just claimed. MUST run under the lock. */
  async #continue(keys: readonly WorkKey[]): Promise<void> {
    for (const work of this.#kinds) {
      const own = keys.filter(({ workspaceId, id }) => work.names(id) && !work.knows(workspaceId, id));
      for (const [workspaceId, group] of Map.groupBy(own, (key) => key.workspaceId)) {
        const ids = group.map(({ id }) => id);
        for (const id of await work.adopt(workspaceId, ids)) this.#refused.add(id);
      }
    }
  }

  async #resumeDue(): Promise<void> {
    for (const key of await this.#parts.claims.takeDue()) this.#due.set(key.id, key);
    for (const key of this.#due.values()) void this.#resume(key);
  }

  /** Not awaited by a beat: the run that asked for a decision may take minutes to end. Never rejects. */
  async #resume(key: WorkKey): Promise<void> {
    const { workspaceId, id } = key;
    if (this.#resuming.has(id)) return;
    this.#resuming.add(id);
    try {
      const isDone = (await this.#workOf(id)?.resume(workspaceId, id)) ?? true;
      // A later decision is another key.
      if (isDone && this.#due.get(id) === key) this.#due.delete(id);
    } catch (error) {
      // It is tried again with the next beat.
      if (!(error instanceof StoreUnavailable))
        this.#parts.log.error("a task cannot be resumed", { task: id, error });
    } finally {
      this.#resuming.delete(id);
    }
  }

  /**
   * Compares the claims with what this node knows, if their numbers differ. Only a difference that lasts counts: work may
   * just have begun or ended.
   */
  async #compare(): Promise<void> {
    const { claims } = this.#parts;
    const known = this.#kinds.reduce((sum, { size }) => sum + size, 0);
    if ((await claims.count()) === known) {
      this.#unknown.clear();
      this.#missing.clear();
      return;
    }
    await this.#locks.run(TAKING, async () => {
      const own = await claims.own();
      const ids = new Set(own.map(({ id }) => id));
      const unknown = own.filter(
        ({ workspaceId, id }) => !this.#refused.has(id) && !this.#workOf(id)?.knows(workspaceId, id),
      );
      await this.#continue(this.#unknown.lasting(unknown));
      const missing = this.#kinds.flatMap((work) => work.all().filter(({ id }) => !ids.has(id)));
      for (const { workspaceId, id } of this.#missing.lasting(missing)) {
        this.#workOf(id)?.forget(workspaceId, id);
      }
    });
  }

  /** A stop's message may have been missed. */
  async #endAllStopped(): Promise<void> {
    for (const { workspaceId, agentId } of await this.#parts.stopped()) {
      await this.#endStopped(workspaceId, agentId);
    }
  }

  /**
   * Asks the store, because the message may be a late copy of one whose stop has been undone. It may also be early: it is sent
   * while the stop is written. Never rejects; whatever is missed is found with the next beat.
   */
  async #endIfStopped(workspaceId: number, agentId: number | null): Promise<void> {
    const { clock, isStopped, log } = this.#parts;
    const until = clock.monotonic() + STOP_WRITTEN_MS;
    try {
      while (!(await isStopped(workspaceId, agentId))) {
        if (clock.monotonic() >= until) return;
        await pause(LOOK_AGAIN_MS, clock, new AbortController().signal);
      }
      await this.#endStopped(workspaceId, agentId);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) log.error("stopped work cannot be ended", { error });
    }
  }

  async #endStopped(workspaceId: number, agentId: number | null): Promise<void> {
    this.#parts.endCalls(workspaceId, agentId);
    await Promise.all(this.#kinds.map((work) => work.endStopped(workspaceId, agentId)));
  }

  #forgetAll(): void {
    for (const work of this.#kinds) {
      for (const { workspaceId, id } of work.all()) work.forget(workspaceId, id);
    }
  }

  #on({ workspace, task }: BusMessage, act: (work: ClaimedWork, key: WorkKey) => void | Promise<void>): void {
    if (typeof workspace !== "number" || typeof task !== "string") return;
    const work = this.#workOf(task);
    if (!work?.knows(workspace, task)) return;
    Promise.resolve(act(work, { workspaceId: workspace, id: task })).catch((error: unknown) => {
      this.#parts.log.warn("a message of another node could not be acted on", { task, error });
    });
  }

  #workOf(id: string): ClaimedWork | undefined {
    return this.#kinds.find((work) => work.names(id));
  }

  #wake(): void {
    this.#moved.abort();
    this.#moved = new AbortController();
  }
}
