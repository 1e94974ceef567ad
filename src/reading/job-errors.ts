import { Problem } from "../base/errors.ts";
import { openFilesReserve } from "../base/open-files/reserve.ts";
import { StoreUnavailable } from "../store/db.ts";

/** If fewer descriptors than this are free, a database that cannot be opened most likely lacked them. */
const FEW_FILES = 32;

export interface JobFailure {
  readonly message: string;
  /** The request's field at fault, if the user can fix it. */
  readonly field: string | null;
  /** Whether the store could not be read. */
  readonly isStore: boolean;
}

/** A job with an invalid request: the field, and what is wrong with it. */
export class JobRefused extends Error {
  override readonly name = "JobRefused";
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** A job that exceeded its time or memory. Its worker was ended. */
export class JobOverLimit extends Error {
  override readonly name = "JobOverLimit";
}

/** Converts a worker's failure to an error. */
export function errorOf({ message, field, isStore }: JobFailure): Error {
  if (field !== null) return new JobRefused(field, message);
  if (isStore && !openFilesReserve.hasRoom(FEW_FILES)) return outOfOpenFiles();
  return isStore ? new StoreUnavailable(message) : new Error(message);
}

export function tookTooLong(ms: number): JobOverLimit {
  return new JobOverLimit(`took longer than ${ms / 1000} seconds`);
}

/** Client connections have used up the descriptors that the job needs. */
export function outOfOpenFiles(): Problem {
  return new Problem("rate_limited", "The server has too many open connections. Try again shortly.", {
    headers: { "Retry-After": "1" },
  });
}
