import { useEffect, useState } from "preact/hooks";
import type { FeedEvents } from "../../http/api.ts";
import { useSession } from "./session.tsx";

type Usage = FeedEvents["usage"];
type Status = FeedEvents["workspace.changed"]["status"];

/** The workspace's current usage, from the feed; null before the first event. */
export function useUsage(): Usage | null {
  const { feed } = useSession();
  const [usage, setUsage] = useState<Usage | null>(() => feed.last("usage") ?? null);
  useEffect(() => feed.listen("usage", setUsage), [feed]);
  return usage;
}

/** Whether the workspace is stopped. */
export function useWorkspaceStatus(): Status {
  return useSession().session.workspace_status;
}
