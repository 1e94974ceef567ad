import { Problem, type ProblemOptions } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { LedgerChanged } from "../ledger/ledger-changed.ts";
import { OutcomeUnknown, StoreUnavailable } from "../store/db.ts";
import type { RequestLimit } from "./requests.ts";

/** The refusal of a call beyond its workspace's request limit. */
export function rateLimited(limit: RequestLimit, options: Pick<ProblemOptions, "isRecorded"> = {}): Problem {
  return new Problem("rate_limited", `The workspace is limited to ${limit.quota} requests per minute.`, {
    ...options,
    headers: { "Retry-After": String(limit.retrySeconds) },
  });
}

/** The outcome recorded for a call that was not carried out. A client that disconnected was not denied anything. */
export function outcomeOf({ code, status }: Problem): "cancelled" | "failed" | "denied" {
  if (code === "client_closed") return "cancelled";
  return status >= 500 ? "failed" : "denied";
}

/** The part of an error that may be shown. The rest is logged with the request id. */
export function toProblem(error: unknown, origin: { readonly requestId: string }, log: Log): Problem {
  if (error instanceof Problem) {
    if (error.cause !== undefined)
      log.warn(error.message, { request_id: origin.requestId, cause: error.cause });
    return error;
  }
  if (error instanceof StoreUnavailable) {
    log.error("the ledger cannot be written", { request_id: origin.requestId, error });
    const detail =
      error instanceof OutcomeUnknown
        ? "The evidence ledger failed while it recorded this call. Whether the call was carried out is unknown: check before you repeat it."
        : "The evidence ledger cannot be written; nothing was done.";
    return new Problem("ledger_unavailable", detail, { headers: { "Retry-After": "5" } });
  }
  if (error instanceof LedgerChanged) {
    log.error("the stored ledger is not the one that was signed", { request_id: origin.requestId, error });
    return new Problem(
      "ledger_unavailable",
      "The stored ledger is not the one that was signed. Run `gatehouse ledger verify` on the server to see what was changed.",
    );
  }
  log.error("a call failed", { request_id: origin.requestId, error });
  return new Problem("internal", "Something went wrong. Search the server's log for the request id.");
}
