import type { DeliveryRef } from "./deliveries.ts";

/** Deliveries to post, by workspace in round-robin order, so that no workspace blocks others. */
export class DeliveryLines {
  readonly #lines = new Map<number, Set<string>>();

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  /** Appends a delivery to its workspace's queue. One already queued keeps its place. */
  add({ workspaceId, id }: DeliveryRef): void {
    const line = this.#lines.get(workspaceId) ?? new Set();
    line.add(id);
    this.#lines.set(workspaceId, line);
  }

  /** Takes the next delivery of a workspace that `mayTake` allows. */
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
