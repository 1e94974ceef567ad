import type { DeliveryRef } from "./deliveries.ts";

/** Deliveries that are to be posted, by workspace. Workspaces take turns: one that has many does not hold up the others. */
export class DeliveryLines {
  readonly #lines = new Map<number, Set<string>>();

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  /** Puts one behind its workspace's others; one that is there already keeps its place. */
  add({ workspaceId, id }: DeliveryRef): void {
    const line = this.#lines.get(workspaceId) ?? new Set();
    line.add(id);
    this.#lines.set(workspaceId, line);
  }

  /** Takes out the next one of a workspace that `mayTake` allows. */
  take(mayTake: (workspaceId: number) => boolean): DeliveryRef | undefined {
    for (const [workspaceId, line] of this.#lines) {
      const [id] = line;
      if (id === undefined || !mayTake(workspaceId)) continue;
      line.delete(id);
      this.#lines.delete(workspaceId);
      if (line.size > 0) this.#lines.set(workspaceId, line);
      return { workspaceId, id };
    }
    return undefined;
  }

  clear(): void {
    this.#lines.clear();
  }
}
