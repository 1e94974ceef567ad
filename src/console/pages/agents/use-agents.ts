import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Agent } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { asProblem } from "../../api/problem.ts";
import { useSession } from "../../state/session.tsx";
import { useWorkspaceStatus } from "../../state/usage.ts";
import type { Pages } from "../../state/use-pages.ts";
import { useSoon } from "../../state/use-soon.ts";
import { useWhole } from "./use-whole.ts";

/** If more agents than this change at once, the list is read instead. */
const MOST_ALONE = 3;

/** All agents by name, updated live. */
export function useAgents(): Pages<Agent> {
  const { feed } = useSession();
  const pages = useWhole<Agent>("agents", (query, signal) => call("GET /v1/agents", { query, signal }));
  const { items, change, reload } = pages;
  const shown = useRef(items);
  shown.current = items;
  const changed = useRef(new Set<string>());

  const soon = useSoon(() => {
    const names = [...changed.current];
    changed.current.clear();
    if (names.length > MOST_ALONE) return reload();
    for (const name of names) void readOne(name);
  });

  async function readOne(name: string): Promise<void> {
    try {
      const agent = await call("GET /v1/agents/:name", { params: { name } });
      change((before) => [...before.filter((other) => other.name !== name), agent]);
    } catch (error) {
      // An archived agent has its own event. Any other failure shows when the list is read.
      if (asProblem(error).status !== 404) reload();
    }
  }

  useEffect(
    () =>
      feed.listen("agent.changed", ({ name, status, version }) => {
        if (status === "archived") {
          change((before) => before.filter((agent) => agent.name !== name));
          return;
        }
        const known = shown.current.find((agent) => agent.name === name);
        if (known && known.version === version && known.status === status) return;
        changed.current.add(name);
        soon();
      }),
    [feed, change, soon],
  );

  // Stopping the workspace changes all agents, without an event for each.
  const status = useWorkspaceStatus();
  const last = useRef(status);
  useEffect(() => {
    if (last.current !== null && last.current !== status) reload();
    last.current = status;
  }, [status, reload]);

  // An agent created while pages were being read may be on two of them.
  const sorted = useMemo(() => {
    const byName = new Map(items.map((agent) => [agent.name, agent]));
    return [...byName.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
  }, [items]);
  return { ...pages, items: sorted };
}
