/** What the other nodes have queued and run, for a node's scheduler. */
export interface OtherQueues {
  /**
   * How many tasks and calls of a workspace this node may run, if the workspace's limit is enforced. More are asked for
   * as soon as some wait.
   */
  granted(workspaceId: number): number;
  /** How many tasks and calls of a workspace wait at other nodes, as far as this one knows. */
  waiting(workspaceId: number): number;
  /** How many tasks and calls of a workspace run at other nodes, as far as this one knows. */
  running(workspaceId: number): number;
  /** Called when what this node has queued or runs has changed. */
  changed(workspaceId: number): void;
}
