import { useRef } from "preact/hooks";
import type { Connector } from "../../../http/api.ts";
import type { ApiProblem } from "../../api/problem.ts";
import { useConnectors as useWholeConnectors } from "../agents/use-whole.ts";

export interface LoadedConnectors {
  /** Undefined before all have been read. */
  readonly data: readonly Connector[] | undefined;
  readonly problem: ApiProblem | null;
  readonly isLoading: boolean;
  reload(): void;
  change(update: (connectors: readonly Connector[]) => readonly Connector[]): void;
}

/**
 * All connectors of the workspace, by name, read to the end of the list. A token that may not read them asks for none. While they
 * are read again, the ones from before are shown.
 */
export function useConnectors(): LoadedConnectors {
  const { items, isWhole, problem, isLoading, reload, change } = useWholeConnectors();
  const last = useRef<readonly Connector[]>(undefined);
  if (isWhole) last.current = items;
  return { data: last.current, problem, isLoading, reload, change };
}
