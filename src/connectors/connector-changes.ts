import type { Workspaces } from "../access/workspaces.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Bus } from "../nodes/bus.ts";
import type { Nodes } from "../nodes/nodes.ts";
import { StoreUnavailable } from "../store/db.ts";
import type { Connectors } from "./connectors.ts";

const CHANGED = "connectors.changed";
const RETRY_MS = 1_000;

export interface ConnectorChangeParts {
  readonly nodes: Pick<Nodes, "bus" | "gone">;
  readonly connectors: Pick<Connectors, "follow" | "followAll">;
  readonly workspaces: Pick<Workspaces, "list">;
  readonly clock: Pick<Clock, "after">;
  readonly log: Log;
}

/** Notifies the other nodes of a connector whose row has changed. Removed connectors MUST not be called any more. */
export function announceConnector(bus: Bus, workspace: number, name: string): void {
  bus.send(CHANGED, { workspace, name }, { isUrgent: true });
}

/** Follows what other nodes change in connectors, one change after another. */
export class ConnectorChanges {
  readonly #parts: ConnectorChangeParts;
  /** Connectors to look at, by workspace; null for all connectors of the workspace. */
  readonly #due = new Map<number, Set<string> | null>();
  readonly #ends: (() => void)[];
  #following: Promise<void> | null = null;
  #cancelRetry = () => {};
  #isStopped = false;

  constructor(parts: ConnectorChangeParts) {
    this.#parts = parts;
    const { nodes, workspaces } = parts;
    const followAll = () => {
      for (const { id } of workspaces.list()) this.#due.set(id, null);
      this.#follow();
    };
    this.#ends = [
      nodes.bus.listen(CHANGED, ({ workspace, name }) => {
        if (typeof workspace === "number" && typeof name === "string") this.#add(workspace, name);
      }),
      nodes.bus.missed.listen(followAll),
      nodes.gone.listen(followAll),
    ];
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelRetry();
    for (const end of this.#ends) end();
    await this.#following;
  }

  #add(workspaceId: number, name: string): void {
    const names = this.#due.get(workspaceId);
    if (names) names.add(name);
    else if (names === undefined) this.#due.set(workspaceId, new Set([name]));
    this.#follow();
  }

  #follow(): void {
    this.#following ??= this.#followDue().finally(() => {
      this.#following = null;
    });
  }

  async #followDue(): Promise<void> {
    const { connectors, clock, log } = this.#parts;
    for (let [next] = this.#due; next && !this.#isStopped; [next] = this.#due) {
      const [workspaceId, names] = next;
      this.#due.delete(workspaceId);
      try {
        if (names === null) await connectors.followAll(workspaceId);
        else for (const name of names) await connectors.follow(workspaceId, name);
      } catch (error) {
        log.warn("another node's changes of connectors cannot be read", { workspace_id: workspaceId, error });
        this.#due.set(workspaceId, null);
        // If the store is away, nothing else can be read either.
        if (error instanceof StoreUnavailable) break;
        this.#due.delete(workspaceId);
      }
    }
    if (this.#due.size > 0 && !this.#isStopped) {
      this.#cancelRetry = clock.after(RETRY_MS, () => this.#follow());
    }
  }
}
