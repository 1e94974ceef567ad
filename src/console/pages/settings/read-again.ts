import { useEffect } from "preact/hooks";
import type { FeedEventName } from "../../../http/api.ts";
import { useSession } from "../../state/session.tsx";

/** Each read is a ledger entry: events that come closer together than this share one read. */
const SHORTEST_MS = 1_500;

/** Reads a list again after an event that only says that the list has changed. */
export function useReadAgain(on: FeedEventName, reload: () => void): void {
  const { feed } = useSession();
  useEffect(() => {
    let last = 0;
    let later: ReturnType<typeof setTimeout> | undefined;
    const end = feed.listen(on, () => {
      later ??= setTimeout(
        () => {
          later = undefined;
          last = Date.now();
          reload();
        },
        Math.max(0, last + SHORTEST_MS - Date.now()),
      );
    });
    return () => {
      clearTimeout(later);
      end();
    };
  }, [feed, on, reload]);
}
