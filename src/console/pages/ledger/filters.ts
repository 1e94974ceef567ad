import type { LedgerQuery } from "../../../http/api.ts";

/** Filter fields, named as in REST. */
export const FILTER_FIELDS = ["agent", "actor", "action", "task", "tier", "from", "to"] as const;
export type FilterField = (typeof FILTER_FIELDS)[number];

/** `outside_tasks` is `true` or empty. */
const ALL_FIELDS = [...FILTER_FIELDS, "outside_tasks"] as const;

/** Values by field; empty means unfiltered. Times are RFC 3339 in UTC, so an address means the same everywhere. */
export type LedgerFilter = Readonly<Record<(typeof ALL_FIELDS)[number], string>>;

export const NO_FILTER: LedgerFilter = {
  agent: "",
  actor: "",
  action: "",
  task: "",
  tier: "",
  from: "",
  to: "",
  outside_tasks: "",
};

export type LedgerTab = "entries" | "verify" | "export";

/** Reads the filter from an address. */
export function filterOf(query: Readonly<Record<string, string>>): LedgerFilter {
  const filter = { ...NO_FILTER };
  for (const field of FILTER_FIELDS) filter[field] = query[field] ?? "";
  if (query.outside_tasks === "true") filter.outside_tasks = "true";
  return filter;
}

export function isFiltered(filter: LedgerFilter): boolean {
  return ALL_FIELDS.some((field) => filter[field] !== "");
}

/** The filter as query of `GET /v1/ledger`. Invalid numbers and times are left to the server to refuse. */
export function queryOf({ tier, outside_tasks: outside, ...texts }: LedgerFilter): LedgerQuery {
  const given = Object.entries(texts).filter(([, value]) => value !== "");
  return {
    ...Object.fromEntries(given),
    ...(tier === "" ? {} : { tier: Number(tier) }),
    ...(outside === "" ? {} : { outside_tasks: true }),
  };
}

/** The same filter with or without "model calls outside tasks". */
export function withClientCalls(filter: LedgerFilter, isOn: boolean): LedgerFilter {
  if (isOn) return { ...filter, ...{ action: "model.call", task: "", outside_tasks: "true" } };
  return { ...filter, action: filter.action === "model.call" ? "" : filter.action, outside_tasks: "" };
}

/** The console address of the filtered ledger. */
export function ledgerAddress(filter: LedgerFilter, tab: LedgerTab = "entries"): string {
  const query = new URLSearchParams();
  if (tab !== "entries") query.set("tab", tab);
  for (const field of ALL_FIELDS) if (filter[field] !== "") query.set(field, filter[field]);
  return query.size === 0 ? "/console/ledger" : `/console/ledger?${query}`;
}
