import { OperatorError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";

/** How the process's file descriptors are divided between clients and the program itself. */
export interface ConnectionPlan {
  /** Number of descriptors that the process may have open. */
  readonly openFiles: number;
  /**
   * Maximum number of clients' connections. Beyond it, connections without a call are closed and new calls are
   * refused.
   */
  readonly connections: number;
  /**
   * Connections for calls with a known caller, shared between workspaces. The rest is for callers not yet
   * authenticated.
   */
  readonly calls: number;
  /** Event streams of all workspaces, and of one workspace. Streams are connections too. */
  readonly streams: number;
  readonly streamsPerWorkspace: number;
  /** Descriptors that connections can never take, even briefly. */
  readonly reserve: number;
}

/**
 * Files, threads and the store need about 60. The rest is for upstreams (256 requests), child processes (7 each) and
 * files.
 */
const MOST_OWN = 1_024;
const OWN_SHARE = 3 / 8;
const MOST_RESERVED = 64;
const RESERVED_SHARE = 1 / 16;
/** Each stream also holds at most two blocks of 64 KiB. */
const MOST_STREAMS = 10_000;
const MOST_STREAMS_PER_WORKSPACE = 2_000;
/** Below this, a warning says that a busy server needs more. */
export const COMFORTABLE_OPEN_FILES = 4_096;

/** With fewer, too few are left to serve clients: the program itself opens about 60. */
export const FEWEST_OPEN_FILES = 128;

/** Without a limit (null), there is no plan: only the caps on streams apply. */
export function planConnections(openFiles: number | null): ConnectionPlan | null {
  if (openFiles === null) return null;
  const own = Math.min(MOST_OWN, Math.floor(openFiles * OWN_SHARE));
  const connections = openFiles - own;
  return {
    openFiles,
    connections,
    calls: Math.floor((connections * 3) / 4),
    streams: Math.min(MOST_STREAMS, Math.floor((connections * 3) / 4)),
    streamsPerWorkspace: Math.min(MOST_STREAMS_PER_WORKSPACE, Math.floor(connections / 2)),
    reserve: Math.min(MOST_RESERVED, Math.floor(openFiles * RESERVED_SHARE)),
  };
}

const RAISE = `raise it to ${COMFORTABLE_OPEN_FILES} or more (ulimit -n, or LimitNOFILE= in a systemd unit)`;

/** @throws OperatorError if the limit is too low for a server */
export function checkPlan({ openFiles }: ConnectionPlan): void {
  if (openFiles >= FEWEST_OPEN_FILES) return;
  throw new OperatorError(`the limit on open files is ${openFiles}, too low for a server`, RAISE);
}

/** Logs the connection limit, as a warning if it is low. */
export function reportPlan({ openFiles, connections, streams, reserve }: ConnectionPlan, log: Log): void {
  const numbers = { open_files: openFiles, connections, streams, reserve };
  if (openFiles >= COMFORTABLE_OPEN_FILES)
    log.info("connections are capped by the limit on open files", numbers);
  else log.warn(`the limit on open files is low, so few clients can connect at once; ${RAISE}`, numbers);
}
