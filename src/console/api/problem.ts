import type { ProblemBody } from "../../http/api.ts";

/** A call that was refused or failed, with the server's explanation (RFC 9457). */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  readonly status: number;
  readonly code: string;
  readonly requestId: string | null;
  /** Messages by field, as JSON pointers. */
  readonly fields: ReadonlyMap<string, string>;

  constructor(status: number, body: Pick<ProblemBody, "code" | "detail"> & Partial<ProblemBody>) {
    super(body.detail);
    this.status = status;
    this.code = body.code;
    this.requestId = body.request_id ?? null;
    this.fields = new Map((body.errors ?? []).map(({ path, message }) => [path, message]));
  }
}

/** What the reader can do about it, in addition to the server's message. */
export function adviceFor({ code }: ApiProblem): string | undefined {
  return ADVICE[code];
}

const ADVICE: Readonly<Record<string, string>> = {
  offline: "Check that the server is running. This page tries again automatically.",
  scope_missing: "Sign in with a token that has this scope, or ask the person who issued yours.",
  agent_forbidden: "Sign in with a token that does not act as an agent.",
  person_required: "Sign in with a token that names its person.",
  agent_stopped: "Resume the agent or its workspace first.",
  credits_exhausted: "Raise the budget in Settings or in the agent, or wait until its next period.",
  rate_limited: "Wait a moment, or raise the request limit in Settings.",
  queue_full: "Wait until part of the queue is done, then try again.",
  ledger_unavailable: "Nothing was done. If the server's disk is full, free some space, then try again.",
  draining: "The server is shutting down. Try again when it is back.",
  approval_decided: "Somebody else has already decided. The list shows what is left.",
  approval_changed: "The arguments or the tool have changed. Review the call again, then decide.",
  approval_erased: "Deny the call, or approve it with your own arguments.",
  connector_exists: "Choose another name.",
  connector_limit: "Remove a connector that you no longer use.",
  tool_forbidden: "Use a token whose tools: scopes include it, or add it to the connector's scopes.",
  unknown_tool: "Its connector's tools may have changed. Refresh the connector.",
  internal: "Look up the request id in the server's log to find the cause.",
};

/** The server could not be reached. */
export function offline(): ApiProblem {
  return new ApiProblem(0, { code: "offline", detail: "The server does not answer." });
}

/** Converts anything thrown to an `ApiProblem`. */
export function asProblem(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new ApiProblem(0, { code: "page_failed", detail });
}
