import { useEffect } from "preact/hooks";
import type { Connector, FeedEventName, List, Tier } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { isModel, type Model } from "../../state/model.ts";
import { useSession } from "../../state/session.tsx";
import { type Pages, usePages } from "../../state/use-pages.ts";
import { useSoon } from "../../state/use-soon.ts";

const MOST = 200;
type ReadPage<Item> = (query: { limit: number; cursor?: string }, signal: AbortSignal) => Promise<List<Item>>;

/** A whole list, for short lists that are compared as a whole. */
export function useWhole<Item>(
  key: string,
  read: ReadPage<Item>,
  on: FeedEventName | null = null,
): Pages<Item> {
  const { feed } = useSession();
  const pages = usePages<Item>(key, (cursor, signal) =>
    read({ limit: MOST, ...(cursor === undefined ? {} : { cursor }) }, signal),
  );
  const { items, isLoading, isWhole, problem, more, reload } = pages;
  useEffect(() => {
    if (!isLoading && !isWhole && problem === null && items.length > 0) more();
  }, [isLoading, isWhole, problem, items.length, more]);
  const soon = useSoon(reload);
  useEffect(() => (on === null ? undefined : feed.listen(on, soon)), [feed, on, soon]);
  return pages;
}

/** The configured tiers, lowest first. */
export function useTiers(): Pages<Tier> {
  return useWhole("tiers", (query, signal) => call("GET /v1/tiers", { query, signal }));
}

export function useModels(): Pages<Model> {
  return useWhole("models", async ({ cursor }, signal) => {
    const query = cursor === undefined ? {} : { cursor };
    const { data, next_cursor } = await call("GET /v1/models", { query, signal });
    return { data: data.filter(isModel), next_cursor };
  });
}

const NONE: List<Connector> = { data: [], next_cursor: null };

/** Connectors with their tools; empty if the reader may not see them. */
export function useConnectors(): Pages<Connector> {
  const { can } = useSession();
  return useWhole(
    "connectors",
    async (query, signal) => (can("connectors:read") ? call("GET /v1/connectors", { query, signal }) : NONE),
    "connector.changed",
  );
}
