import { useEffect } from "preact/hooks";
import type { FeedEventName } from "../../../http/api.ts";
import { useSession } from "../../state/session.tsx";
import { useSoon } from "../../state/use-soon.ts";

/** Reads a list again after an event that only says that the list has changed. */
export function useReadAgain(on: FeedEventName, reload: () => void): void {
  const { feed } = useSession();
  const soon = useSoon(reload);
  useEffect(() => feed.listen(on, soon), [feed, on, soon]);
}
