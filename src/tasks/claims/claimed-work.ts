import type { WorkKey } from "./claims.ts";

/** Work of one kind that this node has claimed: its tasks, or its background responses. In memory. */
export interface ClaimedWork {
  /** Whether the id is that of such work. */
  names(id: string): boolean;
  /** Whether this node is accepting it, or has it queued, running, resting or ending. */
  knows(workspaceId: number, id: string): boolean;
  /** How much of it this node has. */
  readonly size: number;
  /** All of it that other nodes may have taken, because none of it is being accepted. */
  all(): readonly WorkKey[];
  /**
   * The ids of all such work that has not ended, whichever node has it, according to the ledger.
   * @throws LedgerChanged
   */
  openIds(workspaceId: number): Promise<readonly string[]>;
  /**
   * Takes over what this node has just claimed, with what the ledger shows of it. What was in flight at an earlier node
   * is recorded as lost.
   * @returns what cannot be continued, because its ledger was changed
   */
  adopt(workspaceId: number, ids: readonly string[]): Promise<readonly string[]>;
  /**
   * Continues what another node has queued again.
   * @returns false if it is being taken over just now, so it has to be tried again
   */
  resume(workspaceId: number, id: string): Promise<boolean>;
  /**
   * Gives it to another node: ends the calls in flight, stores the progress, and releases the claim. Resolves when that
   * is done. Work that is being ended is not given away.
   */
  handOver(workspaceId: number, id: string, to: string): Promise<void>;
  /** Forgets what belongs to another node. Ends its calls, and writes nothing. */
  forget(workspaceId: number, id: string): void;
  /** Ends the work of a stopped agent, or of a stopped workspace if `agentId` is null. */
  endStopped(workspaceId: number, agentId: number | null): Promise<void>;
}

/** The other nodes, for a service that needs work of theirs. */
export interface OtherNodes {
  /** Begins to take over what no living node has. Called once, before requests are served. */
  start(): Promise<void>;
  /** Takes over nothing more by itself, because this node is about to leave. */
  stop(): void;
  /** Asks the other nodes for nothing more, because this node has stopped. */
  close(): void;
  /** Takes a task or a response over from the node that has it. Does nothing if this one has it, or if it has ended. */
  bring(workspaceId: number, id: string): Promise<void>;
  /** Makes all other nodes end the work of a stopped agent, or of a stopped workspace if `agentId` is null. */
  tellStopped(workspaceId: number, agentId: number | null): void;
  /**
   * Ends what no living node has of a stopped agent, or of a stopped workspace. While the store is away, that is left to
   * whichever node takes it over.
   */
  endFree(workspaceId: number, agentId: number | null): Promise<void>;
  /**
   * Resolves when no open task is left of a stopped agent or workspace.
   * @throws StoreUnavailable if that takes too long
   */
  endsWritten(workspaceId: number, agentId: number | null): Promise<void>;
}

/** There are no other nodes. */
export const noOtherNodes: OtherNodes = {
  async start() {},
  stop() {},
  close() {},
  async bring() {},
  tellStopped() {},
  async endFree() {},
  async endsWritten() {},
};
