import { useEffect, useState } from "preact/hooks";
import type { Agent } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { type ApiProblem, asProblem } from "../../api/problem.ts";
import { useSession } from "../../state/session.tsx";
import { useSoon } from "../../state/use-soon.ts";

const PAGE = 200;
/** The maximum number of agents that are read: nobody could choose from a longer list. */
const MOST = 1_000;

/** The workspace's agents by name; undefined before they are read, null if the token may not list them. */
export interface AgentList {
  readonly agents: readonly Agent[] | null | undefined;
  readonly problem: ApiProblem | null;
}

export function useAgents(): AgentList {
  const { can, feed } = useSession();
  const mayRead = can("agents:read");
  const [agents, setAgents] = useState<readonly Agent[] | undefined>(undefined);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  const [round, setRound] = useState(0);
  const again = useSoon(() => setRound((before) => before + 1));
  useEffect(() => {
    const ends = [feed.listen("agent.changed", again), feed.onGap(again)];
    return () => {
      for (const end of ends) end();
    };
  }, [feed, again]);
  useEffect(() => {
    if (!mayRead) return undefined;
    const abort = new AbortController();
    feed.ready
      .then(() => readAll(abort.signal))
      .then((read) => {
        if (abort.signal.aborted) return;
        setAgents(read);
        setProblem(null);
      })
      .catch((error: unknown) => {
        if (!abort.signal.aborted) setProblem(asProblem(error));
      });
    return () => abort.abort();
  }, [feed, mayRead, round]);
  return { agents: mayRead ? agents : null, problem };
}

async function readAll(signal: AbortSignal): Promise<readonly Agent[]> {
  const all: Agent[] = [];
  let cursor: string | null = null;
  do {
    const query: { limit: number; cursor?: string } = { limit: PAGE, ...(cursor === null ? {} : { cursor }) };
    const page = await call("GET /v1/agents", { query, signal });
    all.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor !== null && all.length < MOST);
  return all;
}
