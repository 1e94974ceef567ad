import type { Connector } from "../../../http/api.ts";
import type { ApiProblem } from "../../api/problem.ts";
import { useSession } from "../../state/session.tsx";
import { useData } from "../../state/use-data.ts";

export interface LoadedConnectors {
  /** Undefined until all have been read. */
  readonly data: readonly Connector[] | undefined;
  readonly problem: ApiProblem | null;
  readonly isLoading: boolean;
  reload(): void;
  change(update: (connectors: readonly Connector[]) => readonly Connector[]): void;
}

const PAGE = 200;
const ON = ["connector.changed"] as const;

/**
 * All connectors of the workspace, by name. With its built-in ones it may have slightly more than 200: two pages.
 * Reads nothing if the token may not see connectors.
 */
export function useConnectors(): LoadedConnectors {
  const { can } = useSession();
  const first = useData("GET /v1/connectors", can("connectors:read") ? { query: { limit: PAGE } } : null, ON);
  const cursor = first.data?.next_cursor ?? null;
  const rest = useData("GET /v1/connectors", cursor === null ? null : { query: { limit: PAGE, cursor } }, ON);
  const isWhole = first.data !== undefined && (cursor === null || rest.data !== undefined);
  return {
    data: isWhole ? [...first.data.data, ...(cursor === null ? [] : (rest.data?.data ?? []))] : undefined,
    problem: first.problem ?? rest.problem,
    isLoading: first.isLoading || rest.isLoading,
    reload() {
      first.reload();
      if (cursor !== null) rest.reload();
    },
    change(update) {
      for (const page of [first, rest]) page.change((list) => ({ ...list, data: update(list.data) }));
    },
  };
}
