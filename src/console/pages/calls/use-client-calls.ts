import { useEffect } from "preact/hooks";
import type { LedgerEntry, List } from "../../../http/api.ts";
import { useSession } from "../../state/session.tsx";
import { type Loaded, useData } from "../../state/use-data.ts";
import { useSoon } from "../../state/use-soon.ts";
import { CLIENT_CALLS } from "./client-calls.ts";

/** How many calls are shown. Each has up to two entries. */
export const SHOWN = 10;
/** The shortest time between two reads for a busy client: each read is a ledger entry. */
const SHORTEST_MS = 10_000;

/** The entries of clients' newest model calls, of one agent or of all callers. Read again when a call has ended. */
export function useClientCalls(agent: string | null, isReadable: boolean): Loaded<List<LedgerEntry>> {
  const { feed } = useSession();
  const query = { ...CLIENT_CALLS, order: "desc", limit: 2 * SHOWN } as const;
  const loaded = useData(
    "GET /v1/ledger",
    isReadable ? { query: agent === null ? query : { ...query, agent } } : null,
  );
  const { reload } = loaded;
  const soon = useSoon(reload, SHORTEST_MS);
  useEffect(
    () =>
      feed.listen("model.called", (told) => {
        if (agent === null || told.agent === agent) soon();
      }),
    [feed, agent, soon],
  );
  return loaded;
}
