import { useRef } from "preact/hooks";
import type { Connector } from "../../../http/api.ts";
import type { ApiProblem } from "../../api/problem.ts";
import { useConnectors as useWholeConnectors } from "../agents/use-whole.ts";

export interface LoadedConnectors {
  /** Undefined until all have been read. */
  readonly data: readonly Connector[] | undefined;
  readonly problem: ApiProblem | null;
  readonly isLoading: boolean;
  reload(): void;
  change(update: (connectors: readonly Connector[]) => readonly Connector[]): void;
}

/**
 * All connectors of the workspace, by name, from all pages. Reads nothing if the token may not see connectors. The
 * previous list stays while a new one is read.
 */
export function useConnectors(): LoadedConnectors {
  const { items, isWhole, problem, isLoading, reload, change } = useWholeConnectors();
  const last = useRef<readonly Connector[]>(undefined);
  if (isWhole) last.current = items;
  return { data: last.current, problem, isLoading, reload, change };
}
