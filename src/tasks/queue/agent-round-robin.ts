import type { QueuedTask } from "./scheduler.ts";

/**
 * The waiting tasks of one workspace. Agents take turns, one task each; an agent's own tasks are served in order of
 * arrival. An agent that joins, or has had its turn, goes to the end of the round. Every operation takes constant
 * time, however many tasks wait.
 */
export class AgentRoundRobin {
  /** In order of arrival. */
  readonly #places = new Map<string, Link<QueuedTask>>();
  /** The waiting tasks of each agent that has any. */
  readonly #lines = new Map<number, Link<Chain<QueuedTask>>>();
  /** The agents' lines, the next one first. */
  readonly #round = new Chain<Chain<QueuedTask>>();

  get size(): number {
    return this.#places.size;
  }

  has(taskId: string): boolean {
    return this.#places.has(taskId);
  }

  /** Adds a task after its agent's other tasks. A task that is already waiting keeps its place. */
  add(queued: QueuedTask): void {
    const { agentId, taskId } = queued;
    if (this.#places.has(taskId)) return;
    let line = this.#lines.get(agentId);
    if (!line) {
      line = this.#round.append(new Chain());
      this.#lines.set(agentId, line);
    }
    this.#places.set(taskId, line.value.append(queued));
  }

  /** Returns false if the task is not waiting. */
  remove(taskId: string): boolean {
    const place = this.#places.get(taskId);
    if (!place) return false;
    this.#places.delete(taskId);
    const { agentId } = place.value;
    const line = this.#lines.get(agentId);
    line?.value.remove(place);
    if (line?.value.first === null) {
      this.#round.remove(line);
      this.#lines.delete(agentId);
    }
    return true;
  }

  /** Removes and returns the task whose turn it is; undefined if none waits. */
  take(): QueuedTask | undefined {
    const line = this.#round.first;
    const next = line?.value.first?.value;
    if (!line || !next) return undefined;
    this.remove(next.taskId);
    if (line.value.first) {
      this.#round.remove(line);
      this.#lines.set(next.agentId, this.#round.append(line.value));
    }
    return next;
  }

  /** All waiting tasks, in order of arrival. */
  all(): QueuedTask[] {
    return [...this.#places.values()].map(({ value }) => value);
  }

  /** An agent's waiting tasks, in the order in which they will be served. */
  of(agentId: number): QueuedTask[] {
    return this.#lines.get(agentId)?.value.toArray() ?? [];
  }
}

interface Link<T> {
  readonly value: T;
  before: Link<T> | null;
  after: Link<T> | null;
}

/** A doubly linked list. Finding the first item of a `Map` takes time proportional to the deletions before it. */
class Chain<T> {
  #first: Link<T> | null = null;
  #last: Link<T> | null = null;

  get first(): Link<T> | null {
    return this.#first;
  }

  append(value: T): Link<T> {
    const link: Link<T> = { value, before: this.#last, after: null };
    if (this.#last) this.#last.after = link;
    else this.#first = link;
    this.#last = link;
    return link;
  }

  /** The link MUST be in this chain. */
  remove(link: Link<T>): void {
    if (link.before) link.before.after = link.after;
    else this.#first = link.after;
    if (link.after) link.after.before = link.before;
    else this.#last = link.before;
  }

  toArray(): T[] {
    const values: T[] = [];
    for (let link = this.#first; link; link = link.after) values.push(link.value);
    return values;
  }
}
