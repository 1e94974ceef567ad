/** How long this node waits for the database, in milliseconds. */
export interface Timeouts {
  /** For a connection to be established. */
  readonly connectMs: number;
  /** For one of this node's connections to become free. */
  readonly queueMs: number;
  /** For the answer to a statement. Must be more than `statementMs`, whose refusal says more. */
  readonly answerMs: number;
  /** The server ends a statement that runs longer. */
  readonly statementMs: number;
  /**
   * The server ends a session whose transaction is idle for longer, so a node that is frozen while it holds a lock
   * does not stop the others.
   */
  readonly idleMs: number;
  /**
   * The server ends a statement that waits longer for a row that another node has locked. Must be more than `idleMs`, so
   * whoever waits for a frozen node gets the lock.
   */
  readonly lockMs: number;
  /**
   * How long work that may run again is repeated after its first failure. Once the server has been away for this time,
   * everything is refused at once.
   */
  readonly retryMs: number;
  /** How long to ask for the outcome of a commit whose answer was lost. */
  readonly settleMs: number;
}

export const TIMEOUTS: Timeouts = {
  connectMs: 3_000,
  queueMs: 10_000,
  answerMs: 10_000,
  statementMs: 8_000,
  idleMs: 3_000,
  lockMs: 5_000,
  retryMs: 3_000,
  settleMs: 5_000,
};

/** The connections of a node, by what they are for. */
export interface ConnectionCounts {
  readonly writers: number;
  readonly readers: number;
  /** Kept for the reads of rights, and for whatever a stop or a cancel needs. */
  readonly urgent: number;
}

export const CONNECTIONS: ConnectionCounts = { writers: 8, readers: 4, urgent: 2 };
