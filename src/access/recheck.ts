import type { Nodes } from "../nodes/nodes.ts";
import { StoreUnavailable } from "../store/db.ts";
import type { Agents } from "./agents.ts";
import type { Tokens } from "./tokens.ts";
import type { Workspaces } from "./workspaces.ts";

export interface RecheckParts {
  readonly nodes: Pick<Nodes, "isShared" | "bus" | "beat" | "gone">;
  readonly agents: Pick<Agents, "outdate" | "changed">;
  readonly tokens: Pick<Tokens, "revision" | "changed">;
  readonly workspaces: Pick<Workspaces, "outdate" | "readAgain" | "list">;
}

/**
 * Rights hold on all nodes because each change sends a message. A node that dies between a commit and its message sends
 * none, so in addition everything that is remembered is read again before it is used, once in each beat. After messages
 * may have been missed, and after another node is gone, whatever follows rights is told to look at them again.
 */
export function recheckRights({ nodes, agents, tokens, workspaces }: RecheckParts): void {
  if (!nodes.isShared) return;
  function outdate(): void {
    tokens.revision.changed();
    agents.outdate();
    workspaces.outdate();
  }

  async function recheck(): Promise<void> {
    outdate();
    await workspaces.readAgain();
    tokens.changed.emit();
    for (const { id } of workspaces.list()) agents.changed.emit(id);
  }

  nodes.bus.missed.listen(() => void unlessAway(recheck));
  nodes.gone.listen(() => void unlessAway(recheck));
  nodes.beat.listen(outdate);
}

/** While the store is away, nothing changes. When it is back, messages may have been missed. */
async function unlessAway(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
  }
}
