import type { LedgerQuery } from "../../../http/api.ts";

/** Filter fields, named as in REST. */
export const FILTER_FIELDS = ["agent", "actor", "action", "task", "tier", "from", "to"] as const;
export type FilterField = (typeof FILTER_FIELDS)[number];

/** Values by field; empty means unfiltered. Times are RFC 3339 in UTC, so an address means the same everywhere. */
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

/** Reads the filter from an address. */
export function filterOf(query: Readonly<Record<string, string>>): LedgerFilter {
  const filter = { ...NO_FILTER };
  for (const field of FILTER_FIELDS) filter[field] = query[field] ?? "";
  return filter;
}

export function isFiltered(filter: LedgerFilter): boolean {
  return FILTER_FIELDS.some((field) => filter[field] !== "");
}

/** The filter as query of `GET /v1/ledger`. Invalid numbers and times are left to the server to refuse. */
export function queryOf({ tier, ...texts }: LedgerFilter): LedgerQuery {
  const given = Object.entries(texts).filter(([, value]) => value !== "");
  return { ...Object.fromEntries(given), ...(tier === "" ? {} : { tier: Number(tier) }) };
}

/** The console address of the filtered ledger. */
export function ledgerAddress(filter: LedgerFilter, tab: LedgerTab = "entries"): string {
  const query = new URLSearchParams();
  if (tab !== "entries") query.set("tab", tab);
  for (const field of FILTER_FIELDS) if (filter[field] !== "") query.set(field, filter[field]);
  return query.size === 0 ? "/console/ledger" : `/console/ledger?${query}`;
}
