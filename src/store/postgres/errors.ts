import { StoreUnavailable } from "../db.ts";

/**
 * An error of the server or of the connection to it. It has no cause and no detail, because the server's own contain
 * values of rows.
 */
export class EngineError extends Error {
  override readonly name = "EngineError";
  /** SQLSTATE, or null if the connection failed. */
  readonly code: string | null;

  constructor(message: string, code: string | null) {
    super(message);
    this.code = code;
  }
}

/** The server ended the connection, or accepts none: shutdown, crash, timeouts that end a session, class 08. */
const ENDED = /^(57P0[1-5]|08...|25P0[345])$/;
/** The server lacks something (class 53), failed (58, XX), or has become a replica, which refuses writes. */
const IMPAIRED = /^(53...|58...|XX...|25006)$/;
const STATEMENT_TIMEOUT = "57014";
const LOCK_TIMEOUT = "55P03";
const CONFLICTS = ["40001", "40P01"];
/** A pooler runs the session on another connection, which lacks the prepared statement, or already has it. */
const UNKNOWN_STATEMENTS = ["26000", "42P05"];
/** A prepared statement's result has changed its columns, because another version migrated the schema. */
const OUTDATED_STATEMENT = "0A000";
/** The schema's triggers refuse what this program never does. */
const TRIGGER = "P0001";

/** Whether the connection has ended, or none can be had. */
export function isConnectionLost(error: unknown): boolean {
  return error instanceof EngineError && (error.code === null || ENDED.test(error.code));
}

/** Whether the error proves that a commit that answered with it kept nothing. */
export function provesRollback(error: unknown): boolean {
  return error instanceof EngineError && !isConnectionLost(error) && !IMPAIRED.test(error.code ?? "");
}

/** Whether the server has ended the transaction in favour of another one. */
export function isConflict(error: unknown): boolean {
  return error instanceof EngineError && CONFLICTS.includes(error.code ?? "");
}

export function isLockTimeout(error: unknown): boolean {
  return error instanceof EngineError && error.code === LOCK_TIMEOUT;
}

/** Whether the statement has waited for as long as anybody may wait. */
export function hasWaited(error: unknown): boolean {
  return isLockTimeout(error) || (error instanceof EngineError && error.code === STATEMENT_TIMEOUT);
}

export function isStatementUnknown(error: unknown): boolean {
  return error instanceof EngineError && UNKNOWN_STATEMENTS.includes(error.code ?? "");
}

function isStatementOutdated(error: unknown): boolean {
  return (
    error instanceof EngineError && error.code === OUTDATED_STATEMENT && /cached plan/.test(error.message)
  );
}

/** Whether the connection is of no more use. */
export function mustReconnect(error: unknown): boolean {
  return isConnectionLost(error) || isStatementUnknown(error) || isStatementOutdated(error);
}

/** Whether the server cannot be reached, or has no room. */
export function isAway(error: unknown): boolean {
  return isConnectionLost(error) || (error instanceof EngineError && error.code?.startsWith("53") === true);
}

/** Whether the same work may succeed if it is run again now. */
export function mayBeRepeated(error: unknown): boolean {
  return isAway(error) || isConflict(error) || isStatementUnknown(error) || isStatementOutdated(error);
}

/** Whether the store is unavailable: nothing is wrong with the statement. */
export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof EngineError)) return false;
  const code = error.code ?? "";
  return (
    mayBeRepeated(error) ||
    IMPAIRED.test(code) ||
    code === STATEMENT_TIMEOUT ||
    code === LOCK_TIMEOUT ||
    code === TRIGGER
  );
}

/** An error of the engine as the store's own; other errors are returned unchanged. */
export function refusalOf(error: unknown): unknown {
  return isUnavailable(error) ? unavailable(error) : error;
}

/** Never passes the error itself on: if a group is lost, one job's error must not be shown to the others. */
export function unavailable(error: unknown): StoreUnavailable {
  if (error instanceof StoreUnavailable) return error;
  const code = error instanceof EngineError ? (error.code ?? error.message) : "unknown";
  return new StoreUnavailable(`the database cannot be used (${code})`, error);
}
