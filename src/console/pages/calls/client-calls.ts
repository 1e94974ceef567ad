import type { LedgerEntry, LedgerQuery } from "../../../http/api.ts";

/** The ledger's filter for model calls that clients make themselves. */
export const CLIENT_CALLS = { action: "model.call", outside_tasks: true } as const satisfies LedgerQuery;

/** The APIs that clients use, under their vendors' names. */
const API_NAMES: Readonly<Record<string, string>> = {
  chat_completions: "Chat Completions",
  responses: "Responses",
  messages: "Messages",
  embeddings: "Embeddings",
};

/** What entries record about a request to a model. Null: not recorded, for example because it has not ended. */
export interface ModelCallFacts {
  readonly api: string | null;
  /** From 1: which of a route's models was tried. */
  readonly attempt: number | null;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  /** Whether the tokens were estimated, because the provider has not reported them. */
  readonly isEstimated: boolean;
  readonly firstTokenMs: number | null;
  readonly durationMs: number | null;
  /** Tokens in a prompt that was only counted. */
  readonly countedTokens: number | null;
}

/** Whether an entry belongs to a model call, or a count of tokens, that a client has made itself. */
export function isClientCall({ action, task }: Pick<LedgerEntry, "action" | "task">): boolean {
  return task === null && ["model.call", "model.count", "response.dispatch"].includes(action);
}

export function modelCallFacts({ detail }: Pick<LedgerEntry, "detail">): ModelCallFacts {
  const number = (field: string) => {
    const value = detail?.[field];
    return typeof value === "number" ? value : null;
  };
  const dialect = detail?.dialect;
  return {
    api: typeof dialect === "string" ? (API_NAMES[dialect] ?? dialect) : null,
    attempt: number("attempt"),
    inputTokens: number("input_tokens"),
    outputTokens: number("output_tokens"),
    isEstimated: detail?.usage === "estimated",
    firstTokenMs: number("first_token_ms"),
    durationMs: number("duration_ms"),
    countedTokens: number("counted_tokens"),
  };
}

/** A client's request to a model, as shown by the newest of its entries. */
export interface ClientCallRow {
  readonly entry: LedgerEntry;
  /** The entry's outcome; `running` if there is only an intent. */
  readonly status: string;
}

/**
 * Pairs intents with their outcomes.
 * @param entries newest first, without gaps: an outcome always comes after its intent
 */
export function clientCallsOf(entries: readonly LedgerEntry[]): ClientCallRow[] {
  const ended = new Set(entries.map(({ ref }) => ref));
  return entries.flatMap((entry) => {
    if (entry.phase !== "intent") return [{ entry, status: entry.outcome }];
    return ended.has(entry.seq) ? [] : [{ entry, status: "running" }];
  });
}
