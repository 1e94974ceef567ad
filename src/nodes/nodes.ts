import type { Signal } from "../base/signal.ts";
import type { Bus } from "./bus.ts";
import type { Leases } from "./leases.ts";

/** A running process that uses the store. */
export interface NodeInfo {
  readonly id: string;
  readonly version: string;
  /** When it began, in milliseconds since the Unix epoch. */
  readonly since: number;
  /** When it last reported that it is alive, in milliseconds since the Unix epoch. */
  readonly lastSeen: number;
  /** How many tasks it runs. */
  readonly tasks: number;
}

/** This process among the nodes that share its store. */
export interface Nodes {
  /** Whether other nodes may use the store. */
  readonly isShared: boolean;
  /** Identifies this node. Never used again: a node that was given up for dead gets another id before it goes on. */
  readonly id: string;
  readonly bus: Bus;
  readonly leases: Leases;
  /**
   * Emits every two seconds, and as soon as another node is given up for dead or has left: what it had claimed may be
   * claimed by others.
   */
  readonly beat: Signal<void>;
  /**
   * Emits the former id of this node when the others have given it up for dead, for example because it was frozen. What
   * it had claimed belongs to others.
   */
  readonly lost: Signal<string>;
  /** Emits when another node is gone. It may have died between a commit and the message that tells of it. */
  readonly gone: Signal<void>;
  /** All nodes, the oldest first. @throws StoreUnavailable */
  list(): Promise<readonly NodeInfo[]>;
  /** How many tasks this node runs, for `list`. */
  countTasks(count: () => number): void;
  /** Leaves, so that others may claim at once what this node had claimed. */
  close(): Promise<void>;
}
