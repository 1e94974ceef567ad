/** Marks the codes of requests that were valid but forbidden by a rule about who may do what, or how much. */
const BY_RULE = true;

/** All codes of the contract's section 3, with their HTTP status and title (RFC 9457). */
const PROBLEMS = {
  invalid_json: [400, "The body is not valid JSON"],
  unsupported_parameter: [400, "A parameter is not supported here"],
  provider_refused: [400, "The model's provider refused the request"],
  nested_too_deep: [400, "The body is nested too deeply"],
  unauthenticated: [401, "Authentication is required", BY_RULE],
  invalid_token: [401, "The token is not valid", BY_RULE],
  credits_exhausted: [402, "The budget is spent", BY_RULE],
  scope_missing: [403, "The token lacks a scope", BY_RULE],
  person_required: [403, "The token does not name a person", BY_RULE],
  agent_forbidden: [403, "The token acts as another agent", BY_RULE],
  tier_forbidden: [403, "The agent's policy does not allow this tier", BY_RULE],
  model_forbidden: [403, "The agent's policy allows no model of this tier", BY_RULE],
  tool_forbidden: [403, "This tool may not be used", BY_RULE],
  origin_forbidden: [403, "The request comes from another site", BY_RULE],
  insecure_origin: [403, "The page was opened without HTTPS", BY_RULE],
  operator_only: [403, "Only the operator may do this", BY_RULE],
  scope_forbidden: [403, "The memory scope is outside the boundary", BY_RULE],
  not_found: [404, "Not found"],
  agent_not_found: [404, "No such agent"],
  model_not_found: [404, "No such model"],
  method_not_allowed: [405, "Method not allowed"],
  agent_exists: [409, "An agent with this name already exists"],
  agent_stopped: [409, "The agent or its workspace is stopped", BY_RULE],
  idempotency_conflict: [409, "The idempotency key was used with a different body"],
  approval_changed: [409, "The approval request has changed", BY_RULE],
  approval_erased: [409, "The approval request was erased", BY_RULE],
  approval_decided: [409, "The call has already been decided", BY_RULE],
  task_finished: [409, "The task has finished"],
  task_unfinished: [409, "The task has not finished"],
  task_not_finished: [409, "The task to continue has not finished"],
  connector_exists: [409, "A connector with this name already exists"],
  connector_builtin: [409, "The connector is built in"],
  connector_limit: [409, "The workspace has reached its limit of connectors"],
  schedule_limit: [409, "The workspace has reached its limit of schedules"],
  token_limit: [409, "The workspace has reached its limit of tokens"],
  workspace_exists: [409, "A workspace with this name already exists"],
  body_too_large: [413, "The body is too large"],
  unsupported_media_type: [415, "Unsupported media type"],
  unknown_tier: [422, "No such tier"],
  unknown_tool: [422, "No such tool"],
  model_unpriced: [422, "The model has no price", BY_RULE],
  validation_failed: [422, "The request is not valid"],
  rate_limited: [429, "Too many requests", BY_RULE],
  queue_full: [429, "The queue is full", BY_RULE],
  provider_busy: [429, "The model's provider is busy"],
  // Never received by the client. The status code is the one that nginx uses.
  client_closed: [499, "The client closed the connection"],
  internal: [500, "Internal error"],
  provider_failed: [502, "The model's provider failed"],
  provider_timeout: [504, "The model's provider did not answer in time"],
  draining: [503, "The server is shutting down"],
  ledger_unavailable: [503, "The ledger is unavailable"],
  loop_detected: [508, "The request has passed through this server before"],
} as const satisfies Record<string, readonly [status: number, title: string, byRule?: typeof BY_RULE]>;

export type ProblemCode = keyof typeof PROBLEMS;

/** The codes of refusals by a rule. Reports count them separately from requests that could not be served. */
export const RULE_CODES: ReadonlySet<string> = new Set(
  Object.entries(PROBLEMS).flatMap(([code, [, , byRule]]) => (byRule ? [code] : [])),
);

/** A refused field. `path` is a JSON pointer into the body or the query, or a header's name. */
export interface FieldError {
  readonly path: string;
  readonly message: string;
}

/** Describes, for a model, what is wrong with a tool's arguments. */
export function describeArgumentErrors(errors: readonly FieldError[]): string {
  const list = errors.map(({ path, message }) => `${path || "arguments"}: ${message}`).join("; ");
  return `The arguments are not valid. ${list}`;
}

export interface ProblemOptions {
  readonly errors?: readonly FieldError[];
  /** Response headers for this problem, such as `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * False for a refusal without a ledger entry, such as when writing one would fill a full server further. Default
   * true.
   */
  readonly isRecorded?: boolean;
  /** The underlying error. Logged, never sent to the caller. */
  readonly cause?: unknown;
}

/** A refusal or failure whose code and message callers may see. Its cause is only logged. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly status: number;
  readonly title: string;
  readonly errors: readonly FieldError[] | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly isRecorded: boolean;

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    const [status, title] = PROBLEMS[code];
    this.code = code;
    this.status = status;
    this.title = title;
    this.errors = options.errors;
    this.headers = options.headers ?? {};
    this.isRecorded = options.isRecorded ?? true;
  }
}

/** A 422 `validation_failed` for a field that a schema cannot check. */
export function invalidField(path: string, message: string): Problem {
  return new Problem("validation_failed", `${path}: ${message}`, { errors: [{ path, message }] });
}

/**
 * An error for the operator of the program (a bad configuration, a locked directory). Printed without a stack, with
 * the next step to take. Never sent over HTTP.
 */
export class OperatorError extends Error {
  override readonly name = "OperatorError";
  readonly hint: string | undefined;
  /** Exit code of the command line: 1 failed, 2 wrong usage, 3 could not be verified. */
  readonly exitCode: 1 | 2 | 3;

  constructor(message: string, hint?: string, exitCode: 1 | 2 | 3 = 1) {
    super(message);
    this.hint = hint;
    this.exitCode = exitCode;
  }
}
