import { useEffect } from "preact/hooks";
import type { FeedEventName } from "../../../http/api.ts";
import { useSession } from "../../state/session.tsx";

/** Each reading is an entry in the ledger: events that come closer together than this share one. */
const SHORTEST_MS = 1_500;

/** Reads a list again when an event has come that says no more than that it is another one now. */
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
