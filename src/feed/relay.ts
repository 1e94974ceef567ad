import type { Topic } from "./channel.ts";
import type { FeedEvent } from "./events.ts";

/** Passes changes on this node to the readers on other nodes. MUST be called with committed changes only. */
export interface FeedRelay {
  published(workspaceId: number, event: FeedEvent): void;
  touched(workspaceId: number, topic: Topic, key: string): void;
  grown(workspaceId: number, size: number): void;
  /** Passes on what is still being collected. */
  flush(): void;
}

/** Where changes on other nodes go: to the readers on this node. */
export interface FeedReaders {
  published(workspaceId: number, event: FeedEvent): void;
  touched(workspaceId: number, topic: Topic, key: string): void;
  grown(workspaceId: number, size: number): void;
  /** Makes the readers of one workspace, or of all, read everything again. */
  reset(workspaceId?: number): void;
}
