import type { Clock } from "../../../base/clock.ts";
import type { Nodes } from "../../../nodes/nodes.ts";
import type { Scheduler } from "../scheduler.ts";

/** How much of a workspace waits and runs at a node: `node`, `workspace`, `waiting`, `running`. */
const COUNTS = "queue.counts";
/** How often a change is reported. */
const QUEUE_MS = 50;
const RUNS_MS = 250;
/** A node that has not reported for this time counts as empty. Nodes report with each beat. */
const EXPIRY_MS = 6_000;

/** What a node has of one workspace. */
export interface NodeCount {
  readonly nodeId: string;
  readonly workspaceId: number;
  readonly waiting: number;
  readonly running: number;
}

interface Received extends NodeCount {
  readonly at: number;
}

type OwnCount = Pick<NodeCount, "waiting" | "running">;

const NOTHING: OwnCount = { waiting: 0, running: 0 };

export interface CountsParts {
  readonly nodes: Pick<Nodes, "id" | "bus" | "beat">;
  readonly scheduler: Pick<Scheduler, "running" | "waiting">;
  readonly clock: Clock;
}

/**
 * How many tasks and calls wait and run at other nodes, by their messages. An estimate: it is good enough for the length of
 * queues and for notices, and costs no statement.
 */
export class QueueCounts {
  readonly #parts: CountsParts;
  /** By workspace, then by node. */
  readonly #received = new Map<number, Map<string, Received>>();
  readonly #sent = new Map<number, OwnCount>();
  readonly #planned = new Set<number>();

  constructor(parts: CountsParts) {
    this.#parts = parts;
    const { bus, beat } = parts.nodes;
    bus.listen(COUNTS, ({ node, workspace, waiting, running }) => {
      if (typeof node !== "string" || typeof workspace !== "number") return;
      this.#receive({
        ...{ nodeId: node, workspaceId: workspace, waiting: Number(waiting), running: Number(running) },
      });
    });
    beat.listen(() => {
      for (const workspaceId of [...this.#sent.keys()]) this.#send(workspaceId);
    });
  }

  waiting(workspaceId: number): number {
    return this.#sum(workspaceId, "waiting");
  }

  running(workspaceId: number): number {
    return this.#sum(workspaceId, "running");
  }

  /** The nodes at which something waits. */
  *waitingElsewhere(): Iterable<NodeCount> {
    for (const workspaceId of this.#received.keys()) {
      for (const count of this.#fresh(workspaceId)) if (count.waiting > 0) yield count;
    }
  }

  changed(workspaceId: number): void {
    if (this.#planned.has(workspaceId)) return;
    const { clock, scheduler } = this.#parts;
    const isQueue = (this.#sent.get(workspaceId) ?? NOTHING).waiting !== scheduler.waiting(workspaceId);
    this.#planned.add(workspaceId);
    clock.after(isQueue ? QUEUE_MS : RUNS_MS, () => {
      this.#planned.delete(workspaceId);
      const { waiting, running } = this.#sent.get(workspaceId) ?? NOTHING;
      const isSame = waiting === scheduler.waiting(workspaceId) && running === scheduler.running(workspaceId);
      if (!isSame) this.#send(workspaceId);
    });
  }

  #send(workspaceId: number): void {
    const { nodes, scheduler } = this.#parts;
    const waiting = scheduler.waiting(workspaceId);
    const running = scheduler.running(workspaceId);
    if (waiting + running > 0) this.#sent.set(workspaceId, { waiting, running });
    else this.#sent.delete(workspaceId);
    nodes.bus.send(COUNTS, { node: nodes.id, workspace: workspaceId, waiting, running });
  }

  #receive(count: NodeCount): void {
    const { workspaceId, nodeId } = count;
    const nodes = this.#received.get(workspaceId) ?? new Map<string, Received>();
    if (count.waiting + count.running > 0) nodes.set(nodeId, { ...count, at: this.#parts.clock.monotonic() });
    else nodes.delete(nodeId);
    if (nodes.size > 0) this.#received.set(workspaceId, nodes);
    else this.#received.delete(workspaceId);
  }

  #sum(workspaceId: number, field: "waiting" | "running"): number {
    let sum = 0;
    for (const count of this.#fresh(workspaceId)) sum += count[field];
    return sum;
  }

  *#fresh(workspaceId: number): Iterable<NodeCount> {
    const nodes = this.#received.get(workspaceId);
    if (!nodes) return;
    const oldest = this.#parts.clock.monotonic() - EXPIRY_MS;
    for (const [nodeId, count] of nodes) {
      if (count.at >= oldest) yield count;
      else nodes.delete(nodeId);
    }
    if (nodes.size === 0) this.#received.delete(workspaceId);
  }
}
