import { useEffect, useState } from "preact/hooks";
import type { VaultScope } from "../../../../http/api.ts";
import { call } from "../../../api/client.ts";
import type { ApiProblem } from "../../../api/problem.ts";
import { useSession } from "../../../state/session.tsx";
import { startRead } from "../../../state/start-read.ts";
import { useSoon } from "../../../state/use-soon.ts";

export interface Scopes {
  /** All scopes with documents, by path; undefined before they are read. */
  readonly scopes: readonly VaultScope[] | undefined;
  readonly problem: ApiProblem | null;
  reload(): void;
}

const PAGE = 200;

/** The scopes with documents that the reader, or `agent`, can see. Updated when documents change. */
export function useScopes(agent: string): Scopes {
  const { feed } = useSession();
  const [read, setRead] = useState<{ readonly agent: string; readonly scopes: readonly VaultScope[] }>();
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const [round, setRound] = useState(0);
  const reload = useSoon(() => setRound((before) => before + 1));

  useEffect(
    () =>
      startRead(feed, (signal) => readAll(agent, signal), {
        show(scopes) {
          setRead({ agent, scopes });
          setProblem(null);
        },
        fail: setProblem,
        retry: reload,
      }),
    [feed, agent, round, reload],
  );

  useEffect(() => {
    const ends = [feed.listen("document.changed", reload), feed.onGap(reload)];
    return () => {
      for (const end of ends) end();
    };
  }, [feed, reload]);

  return { scopes: read?.agent === agent ? read.scopes : undefined, problem, reload };
}

async function readAll(agent: string, signal: AbortSignal): Promise<readonly VaultScope[]> {
  const found: VaultScope[] = [];
  let cursor: string | null = null;
  do {
    const query = { limit: PAGE, agent, ...(cursor === null ? {} : { cursor }) };
    const page: { data: readonly VaultScope[]; next_cursor: string | null } = await call(
      "GET /v1/vault/scopes",
      { query, signal },
    );
    found.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null && !signal.aborted);
  return found;
}
