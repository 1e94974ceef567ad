import type { LedgerQuery } from "../../../http/api.ts";

/** What a reader of the ledger can narrow it by, as REST names it. */
export const FILTER_FIELDS = ["agent", "actor", "action", "task", "tier", "from", "to"] as const;
export type FilterField = (typeof FILTER_FIELDS)[number];

/** By field; empty: not narrowed by it. Times are RFC 3339 in UTC, so that an address means the same to all who open it. */
export type LedgerFilter = Readonly<Record<FilterField, string>>;

export const NO_FILTER: LedgerFilter = {
  agent: "",
  actor: "",
  action: "",
  task: "",
  tier: "",
  from: "",
  to: "",
};

export type LedgerTab = "entries" | "verify" | "export";

/** What an address's query says. */
export function filterOf(query: Readonly<Record<string, string>>): LedgerFilter {
  const filter = { ...NO_FILTER };
  for (const field of FILTER_FIELDS) filter[field] = query[field] ?? "";
  return filter;
}

export function isFiltered(filter: LedgerFilter): boolean {
  return FILTER_FIELDS.some((field) => filter[field] !== "");
}

/** The filter as `GET /v1/ledger` takes it. What is not a number or a time is refused there, by name. */
export function queryOf({ tier, ...texts }: LedgerFilter): LedgerQuery {
  const given = Object.entries(texts).filter(([, value]) => value !== "");
  return { ...Object.fromEntries(given), ...(tier === "" ? {} : { tier: Number(tier) }) };
}

/** Where the ledger stands in the console, narrowed so. */
export function ledgerAddress(filter: LedgerFilter, tab: LedgerTab = "entries"): string {
  const query = new URLSearchParams();
  if (tab !== "entries") query.set("tab", tab);
  for (const field of FILTER_FIELDS) if (filter[field] !== "") query.set(field, filter[field]);
  return query.size === 0 ? "/console/ledger" : `/console/ledger?${query}`;
}
