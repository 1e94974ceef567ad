import { StoreUnavailable } from "../db.ts";
import { sqliteCode } from "./connection.ts";

/**
 * Includes a trigger's refusal: the ledger's guards only refuse what this program never does while it is the only
 * writer.
 */
const UNAVAILABLE =
  /^SQLITE_(FULL|READONLY|IOERR|BUSY|LOCKED|CORRUPT|NOTADB|CANTOPEN|NOMEM|PROTOCOL|CONSTRAINT_TRIGGER)/;

export function isEngineError(error: unknown): boolean {
  return UNAVAILABLE.test(sqliteCode(error));
}

/** The engine's error, which others may have wrapped. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && sqliteCode(error) === "" && error.cause !== undefined
    ? causeOf(error.cause)
    : error;
}

/** An error of the engine as the store's own; other errors are returned unchanged. */
export function refusalOf(error: unknown): unknown {
  return isEngineError(error) ? unavailable(error) : error;
}

/** Never passes the error itself on: if a group is lost, one job's error must not be shown to the others. */
export function unavailable(error: unknown): StoreUnavailable {
  const cause = causeOf(error);
  return new StoreUnavailable(`the store cannot be written (${sqliteCode(cause) || "unknown"})`, cause);
}
