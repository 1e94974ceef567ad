import type { Queued } from "./scheduler.ts";

/**
 * The waiting tasks of one workspace. Agents take turns, one task each; an agent's own tasks are served in the order in
 * which they came. An agent that comes anew is the last of the round, and so is one that has had its turn. Each step takes
 * the same time, however many wait.
 */
export class AgentRoundRobin {
  /** In the order in which they came. */
  readonly #places = new Map<string, Link<Queued>>();
  /** The tasks of each agent that has any. */
  readonly #lines = new Map<number, Link<Chain<Queued>>>();
  /** Whose turn is next, and who follows. */
  readonly #round = new Chain<Chain<Queued>>();

  get size(): number {
    return this.#places.size;
  }

  has(taskId: string): boolean {
    return this.#places.has(taskId);
  }

  /** Puts a task behind its agent's others. One that waits already keeps its place. */
  add(queued: Queued): void {
    const { agentId, taskId } = queued;
    if (this.#places.has(taskId)) return;
    let line = this.#lines.get(agentId);
    if (!line) {
      line = this.#round.append(new Chain());
      this.#lines.set(agentId, line);
    }
    this.#places.set(taskId, line.value.append(queued));
  }

  /** False when it is not waiting. */
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

  /** Takes out the task whose turn it is. Undefined when none waits. */
  take(): Queued | undefined {
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

  /** All that wait, in the order in which they came. */
  all(): Queued[] {
    return [...this.#places.values()].map(({ value }) => value);
  }

  /** An agent's, in the order in which they will be served. */
  of(agentId: number): Queued[] {
    return this.#lines.get(agentId)?.value.toArray() ?? [];
  }
}

interface Link<T> {
  readonly value: T;
  before: Link<T> | null;
  after: Link<T> | null;
}

/** A doubly linked list: of what stands first in a `Map`, finding it takes as long as what was deleted before it. */
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
