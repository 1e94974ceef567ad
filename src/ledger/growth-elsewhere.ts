import type { Log } from "../base/log.ts";
import { Signal } from "../base/signal.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { StoreUnavailable } from "../store/db.ts";
import type { LedgerHeads } from "./heads/heads.ts";
import type { Ledger, LedgerGrowth } from "./ledger.ts";
import type { NamedWorkspace } from "./stored-end.ts";

export interface GrowthElsewhereParts {
  readonly heads: Pick<LedgerHeads, "sizes">;
  readonly ledger: Pick<Ledger, "grown">;
  readonly nodes: Pick<Nodes, "isShared" | "beat" | "bus">;
  readonly log: Pick<Log, "warn">;
  workspaces(): readonly NamedWorkspace[];
}

/**
 * Finds out which ledgers other nodes have appended to, including those of workspaces that they have created: with each
 * beat, and whenever somebody asks. The sizes come from the store unverified, so they are only a reason to look.
 */
export class GrowthElsewhere {
  /** Emits a ledger's size once it exceeds what this node has appended and what was emitted before. */
  readonly grown = new Signal<LedgerGrowth>();
  readonly #parts: GrowthElsewhereParts;
  readonly #known = new Map<number, number>();
  #looking: Promise<void> | null = null;
  #isStale = false;

  constructor(parts: GrowthElsewhereParts) {
    this.#parts = parts;
    const { nodes, ledger } = parts;
    if (!nodes.isShared) return;
    ledger.grown.listen(({ workspaceId, size }) => {
      // Others have appended if this node's own entries do not follow, so the next look emits it.
      if (size === (this.#known.get(workspaceId) ?? 0) + 1) this.#known.set(workspaceId, size);
    });
    nodes.beat.listen(() => this.look());
    nodes.bus.missed.listen(() => this.look());
  }

  /** Looks soon. Never throws. */
  look(): void {
    this.#isStale = true;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
  }

  async #look(): Promise<void> {
    const { heads, workspaces, log } = this.#parts;
    while (this.#isStale) {
      this.#isStale = false;
      try {
        const sizes = await heads.sizes();
        // A workspace that this node does not know yet is emitted once it does.
        for (const { id: workspaceId } of workspaces()) {
          const size = sizes.get(workspaceId) ?? 0;
          if (size <= (this.#known.get(workspaceId) ?? 0)) continue;
          this.#known.set(workspaceId, size);
          this.grown.emit({ workspaceId, size });
        }
      } catch (error) {
        if (!(error instanceof StoreUnavailable))
          log.warn("the sizes of the ledgers cannot be read", { error });
      }
    }
  }
}
