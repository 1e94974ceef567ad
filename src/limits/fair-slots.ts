/** How many may be held at once, and how many may wait. */
export interface FairSlotsOptions {
  readonly slots: number;
  /** The last slots, for workspaces that hold none: whoever holds the others, a call of another workspace finds one. */
  readonly keptForOthers: number;
  /** Calls of one workspace that may wait, and of all. */
  readonly waitingPerWorkspace: number;
  readonly waiting: number;
}

interface SlotCall {
  readonly workspaceId: number;
  readonly take: (release: () => void) => void;
}

/**
 * Slots that workspaces share. A slot that comes free goes to the waiting workspace that holds the fewest, of several to the
 * one that came first; its own calls are served in the order in which they came. Memory only.
 */
export class FairSlots {
  readonly #options: FairSlotsOptions;
  /** Slots of each workspace that holds any. */
  readonly #held = new Map<number, number>();
  /** The waiting calls of each workspace that has any. A workspace that was served goes to the end. */
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
   * Resolves to the function that gives the slot back, which MUST be called and may be called again; to null when too many
   * calls wait already. Rejects with the signal's reason.
   */
  async enter(workspaceId: number, signal?: AbortSignal): Promise<(() => void) | null> {
    signal?.throwIfAborted();
    // Whoever waits may be kept from the last slots, which this workspace may have.
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
