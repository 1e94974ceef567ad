import { useEffect, useRef, useState } from "preact/hooks";
import type { Agent } from "../../../http/api.ts";
import { useSession } from "../../state/session.tsx";
import { useWorkspaceStatus } from "../../state/usage.ts";
import { type Loaded, useData } from "../../state/use-data.ts";
import { useSoon } from "../../state/use-soon.ts";

/** An agent, updated live. */
export interface LiveAgent extends Loaded<Agent> {
  /** Whether it was archived after it was read. */
  readonly isArchived: boolean;
}

/** Reads an agent, and reads it again when this agent changes. */
export function useAgent(name: string): LiveAgent {
  const { feed } = useSession();
  const loaded = useData("GET /v1/agents/:name", { params: { name } });
  const { data, problem, reload } = loaded;
  const [archived, setArchived] = useState<string | null>(null);
  const known = useRef(data);
  known.current = data;
  const soon = useSoon(reload);

  useEffect(
    () =>
      feed.listen("agent.changed", (told) => {
        if (told.name !== name) return;
        setArchived(told.status === "archived" ? name : null);
        if (told.status === "archived") return;
        // Changes made by this page are known from the answer.
        if (known.current?.version === told.version && known.current.status === told.status) return;
        soon();
      }),
    [feed, name, soon],
  );

  const status = useWorkspaceStatus();
  const last = useRef(status);
  useEffect(() => {
    if (last.current !== null && last.current !== status) soon();
    last.current = status;
  }, [status, soon]);

  const isMissing = problem?.code === "agent_not_found" && data !== undefined;
  return { ...loaded, isArchived: archived === name || isMissing };
}
