import type { Log } from "../../base/log.ts";
import type { BusMessage } from "../../nodes/bus.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import { SPACES_CHANGED } from "../rows/shared-space-locks.ts";
import type { Space, Spaces } from "../rows/spaces.ts";
import type { WaitingDocument } from "./backfill.ts";
import type { Upkeep, UpkeepParts } from "./upkeep.ts";

const REMOVING = "vault.remove";
const MERGING = "vault.merge";
const ADDED = "vault.added";
const WAITS = "vault.waits";

export interface SharedUpkeepParts extends UpkeepParts {
  readonly nodes: Pick<Nodes, "bus" | "leases" | "beat">;
  readonly spaces: Pick<Spaces, "refresh">;
  /** The space of the configured model. Nodes whose models differ fill in vectors side by side. */
  readonly configured: Space;
  readonly log: Log;
}

/**
 * The upkeep of nodes that share a store: each kind of work is done by one of them at a time, to which the others report
 * what there is to do. Two of them at the same time would be wasteful, but safe.
 */
export class SharedUpkeep implements Upkeep {
  readonly #parts: SharedUpkeepParts;
  readonly #filling: string;
  #ends: (() => void)[] = [];
  #removing: Promise<void> | null = null;

  constructor(parts: SharedUpkeepParts) {
    this.#parts = parts;
    this.#filling = `vault.fill.${parts.configured.id}`;
  }

  async start(): Promise<void> {
    const { bus, leases, beat } = this.#parts.nodes;
    const { compactor, filler } = this.#parts;
    this.#ends = [
      leases.hold(REMOVING, () => {
        this.#remove();
        return beat.listen(() => this.#remove());
      }),
      leases.hold(MERGING, () => {
        this.#lookForSegments();
        return () => void compactor.stop();
      }),
      leases.hold(this.#filling, () => {
        filler.start();
        return () => void filler.stop();
      }),
      bus.listen(ADDED, (message) => this.#wasAdded(message)),
      bus.listen(WAITS, (message) => this.#isWaiting(message)),
      bus.listen(SPACES_CHANGED, () => this.#refresh()),
      bus.missed.listen(() => {
        this.#refresh();
        if (leases.has(MERGING)) this.#lookForSegments();
      }),
    ];
  }

  async stop(): Promise<void> {
    for (const end of this.#ends) end();
    await this.#parts.filler.stop();
    await this.#parts.compactor.stop();
    await this.#removing;
  }

  added(workspaceId: number, scopeId: number): void {
    const { nodes, compactor } = this.#parts;
    if (nodes.leases.has(MERGING)) compactor.added(workspaceId, scopeId);
    else nodes.bus.send(ADDED, { workspaceId, scopeId });
  }

  waits({ workspaceId, key }: WaitingDocument): void {
    const { nodes, filler } = this.#parts;
    if (nodes.leases.has(this.#filling)) filler.wake({ workspaceId, key });
    else nodes.bus.send(WAITS, { workspaceId, key });
  }

  #wasAdded({ workspaceId, scopeId }: BusMessage): void {
    const { nodes, compactor } = this.#parts;
    if (typeof workspaceId !== "number" || typeof scopeId !== "number") return;
    if (nodes.leases.has(MERGING)) compactor.added(workspaceId, scopeId);
  }

  #isWaiting({ workspaceId, key }: BusMessage): void {
    const { nodes, filler } = this.#parts;
    if (typeof workspaceId !== "number" || typeof key !== "number") return;
    if (nodes.leases.has(this.#filling)) filler.wake({ workspaceId, key });
  }

  /** Removes what dead nodes left unfinished. If it fails, the next beat tries again. */
  #remove(): void {
    const { remover, log } = this.#parts;
    this.#removing ??= remover
      .takeOver()
      .catch((error: unknown) => {
        log.warn("what another node left of documents could not be removed; it will be tried again", {
          error,
        });
      })
      .finally(() => {
        this.#removing = null;
      });
  }

  #lookForSegments(): void {
    const { compactor, log } = this.#parts;
    compactor.start().catch((error: unknown) => {
      log.warn("segments to be merged could not be found; only new ones are merged", { error });
    });
  }

  /** If it fails, messages are missed as well, after which it is tried again. */
  #refresh(): void {
    const { spaces, log } = this.#parts;
    spaces.refresh().catch((error: unknown) => {
      log.warn("the vault's spaces could not be read again", { error });
    });
  }
}
