import type { AnswerOf, CallOptions } from "../../api/client.ts";
import { type Pairs, readPairs } from "./pairs.ts";

export type SearchMode = AnswerOf<"POST /v1/vault/search">["mode"];
type SearchOptions = CallOptions<"POST /v1/vault/search">;

/** What the page shows, as it stands in its address. */
export interface View {
  /** What is looked for; empty: nothing, and documents are listed. */
  readonly text: string;
  readonly mode: SearchMode;
  /** Results at most. */
  readonly most: number;
  /** The path that is chosen; empty: all of them. */
  readonly scope: string;
  /** The agent as which is searched; empty: none. */
  readonly agent: string;
  /** Metadata as it is typed, see `readPairs`. */
  readonly filter: string;
  /** After how long a document counts half, such as `30d`; empty: its age does not count. */
  readonly halfLife: string;
}

export const VAULT = "/console/vault";
export const MODES: readonly (readonly [SearchMode, string])[] = [
  ["hybrid", "Words and vectors"],
  ["keyword", "Words alone"],
  ["vector", "Vectors alone"],
];
export const HALF_LIVES: readonly (readonly [string, string])[] = [
  ["", "Does not count"],
  ["30d", "Half after 30 days"],
  ["90d", "Half after 90 days"],
  ["365d", "Half after a year"],
];
export const MOST: readonly string[] = ["5", "10", "20", "50", "100"];
const USUAL = 10;

/** Whatever an address holds that this page did not write is taken for its usual value. */
export function viewOf(query: Readonly<Record<string, string>>): View {
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

export function addressOfView({ text, mode, most, scope, agent, filter, halfLife }: View): string {
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

/** The call of a view's search; null where there is nothing to search for, or its filter cannot be read. */
export function searchOf({ text, mode, most, scope, agent, filter, halfLife }: View): SearchOptions | null {
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

function isEmpty(pairs: Pairs): boolean {
  return Object.keys(pairs).length === 0;
}

/** What narrows a view's search besides its words is more than the page shows at first. */
export function hasOptions({ most, filter, halfLife, mode }: View): boolean {
  return most !== USUAL || filter !== "" || halfLife !== "" || mode !== "hybrid";
}
