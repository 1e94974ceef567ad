import type { AnswerOf, CallOptions } from "../../api/client.ts";
import { type MetadataPairs, readPairs } from "./pairs.ts";

export type SearchMode = AnswerOf<"POST /v1/vault/search">["mode"];
type SearchFields = CallOptions<"POST /v1/vault/search">;

/** The state of the page, kept in its address. */
export interface SearchView {
  /** The search text; empty: documents are listed instead. */
  readonly text: string;
  readonly mode: SearchMode;
  /** The maximum number of results. */
  readonly most: number;
  /** The selected path; empty: all paths. */
  readonly scope: string;
  /** The agent to search as; empty: none. */
  readonly agent: string;
  /** Metadata filter as typed; see `readPairs`. */
  readonly filter: string;
  /** Age at which a document's score halves, such as `30d`; empty: age does not count. */
  readonly halfLife: string;
}

export const VAULT = "/console/vault";
export const MODES: readonly (readonly [SearchMode, string])[] = [
  ["hybrid", "Words and vectors"],
  ["keyword", "Words only"],
  ["vector", "Vectors only"],
];
export const HALF_LIVES: readonly (readonly [string, string])[] = [
  ["", "Does not count"],
  ["30d", "Half after 30 days"],
  ["90d", "Half after 90 days"],
  ["365d", "Half after a year"],
];
export const MOST: readonly string[] = ["5", "10", "20", "50", "100"];
const USUAL = 10;

/** Invalid values in an address are replaced with defaults. */
export function viewOf(query: Readonly<Record<string, string>>): SearchView {
  return {
    text: query.q ?? "",
    mode: MODES.find(([mode]) => mode === query.mode)?.[0] ?? "hybrid",
    most: MOST.includes(query.top_k ?? "") ? Number(query.top_k) : USUAL,
    scope: query.scope === "/" ? "" : (query.scope ?? ""),
    agent: query.agent ?? "",
    filter: query.filter ?? "",
    halfLife: HALF_LIVES.some(([halfLife]) => halfLife === query.newer) ? (query.newer ?? "") : "",
  };
}

export function addressOfView({ text, mode, most, scope, agent, filter, halfLife }: SearchView): string {
  const search = new URLSearchParams();
  if (text !== "") search.set("q", text);
  if (mode !== "hybrid") search.set("mode", mode);
  if (most !== USUAL) search.set("top_k", String(most));
  if (scope !== "") search.set("scope", scope);
  if (agent !== "") search.set("agent", agent);
  if (filter !== "") search.set("filter", filter);
  if (halfLife !== "") search.set("newer", halfLife);
  return search.size === 0 ? VAULT : `${VAULT}?${search}`;
}

export function documentAddress(
  id: string,
  passage?: { readonly start: number; readonly end: number },
): string {
  const path = `${VAULT}/documents/${encodeURIComponent(id)}`;
  return passage ? `${path}?start=${passage.start}&end=${passage.end}` : path;
}

/** The search request of a view; null without a search text or with an invalid filter. */
export function searchOf({
  text,
  mode,
  most,
  scope,
  agent,
  filter,
  halfLife,
}: SearchView): SearchFields | null {
  const { pairs } = readPairs(filter);
  if (text.trim() === "" || pairs === undefined) return null;
  return {
    body: {
      query: text,
      mode,
      top_k: most,
      explain: true,
      ...(scope === "" ? {} : { scopes: [scope] }),
      ...(agent === "" ? {} : { agent }),
      ...(isEmpty(pairs) ? {} : { filter: { ...pairs } }),
      ...(halfLife === "" ? {} : { recency: { half_life: halfLife } }),
    },
  };
}

function isEmpty(pairs: MetadataPairs): boolean {
  return Object.keys(pairs).length === 0;
}

/** Whether a search has options that the page hides initially. */
export function hasOptions({ most, filter, halfLife, mode }: SearchView): boolean {
  return most !== USUAL || filter !== "" || halfLife !== "" || mode !== "hybrid";
}
