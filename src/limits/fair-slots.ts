/** How many slots can be held at once, and how many calls can wait. */
export interface FairSlotsOptions {
  readonly slots: number;
  /**
   * The last slots, reserved for workspaces that hold none. However many slots the others hold, a call of another
   * workspace finds one.
   */
  readonly keptForOthers: number;
  /** Maximum number of waiting calls of one workspace; `waiting`: of all workspaces. */
  readonly waitingPerWorkspace: number;
  readonly waiting: number;
}

interface SlotCall {
  readonly workspaceId: number;
  readonly take: (release: () => void) => void;
}

/**
 * Slots shared by workspaces. A released slot goes to the waiting workspace that holds the fewest; among equals, to
 * the one that has waited longest. Calls of the same workspace are served in order. In memory.
 */
export class FairSlots {
  readonly #options: FairSlotsOptions;
  /** Slots held by each workspace that holds any. */
  readonly #held = new Map<number, number>();
  /** Waiting calls of each workspace that has any. A workspace goes to the end once served. */
  readonly #waiting = new Map<number, Set<SlotCall>>();
  #taken = 0;
  #size = 0;

  constructor(options: FairSlotsOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#size;
  }

  /**
   * Resolves to a function that releases the slot, which MUST be called and can be called repeatedly. Resolves to
   * null if too many calls are waiting already. Rejects with the signal's reason.
   */
  async enter(workspaceId: number, signal?: AbortSignal): Promise<(() => void) | null> {
    signal?.throwIfAborted();
    // Other workspaces may be waiting because they cannot use the reserved slots. This one can.
    if (!this.#waiting.has(workspaceId) && this.#mayTake(workspaceId)) return this.#take(workspaceId);
    const line = this.#waiting.get(workspaceId) ?? new Set();
    const { waiting, waitingPerWorkspace } = this.#options;
    if (line.size >= waitingPerWorkspace || this.#size >= waiting) return null;
    return new Promise<() => void>((resolve, reject) => {
      const call: SlotCall = {
        workspaceId,
        take: (release) => {
          signal?.removeEventListener("abort", giveUp);
          resolve(release);
        },
      };
      const giveUp = (): void => {
        this.#remove(call);
        reject(signal?.reason);
      };
      line.add(call);
      this.#waiting.set(workspaceId, line);
      this.#size++;
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  #mayTake(workspaceId: number): boolean {
    const free = this.#options.slots - this.#taken;
    return free > (this.#held.has(workspaceId) ? this.#options.keptForOthers : 0);
  }

  #take(workspaceId: number): () => void {
    this.#taken++;
    this.#held.set(workspaceId, (this.#held.get(workspaceId) ?? 0) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#taken--;
      const left = (this.#held.get(workspaceId) ?? 1) - 1;
      if (left > 0) this.#held.set(workspaceId, left);
      else this.#held.delete(workspaceId);
      this.#serve();
    };
  }

  #serve(): void {
    for (let call = this.#next(); call; call = this.#next()) {
      const { workspaceId } = call;
      const line = this.#waiting.get(workspaceId);
      this.#remove(call);
      if (line && line.size > 0) {
        this.#waiting.delete(workspaceId);
        this.#waiting.set(workspaceId, line);
      }
      call.take(this.#take(workspaceId));
    }
  }

  #next(): SlotCall | undefined {
    let found: SlotCall | undefined;
    let fewest = Number.POSITIVE_INFINITY;
    for (const [workspaceId, line] of this.#waiting) {
      const held = this.#held.get(workspaceId) ?? 0;
      if (held >= fewest || !this.#mayTake(workspaceId)) continue;
      fewest = held;
      [found] = line;
    }
    return found;
  }

  #remove(call: SlotCall): void {
    const line = this.#waiting.get(call.workspaceId);
    if (!line?.delete(call)) return;
    this.#size--;
    if (line.size === 0) this.#waiting.delete(call.workspaceId);
  }
}
