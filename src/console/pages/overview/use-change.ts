import { useEffect, useRef } from "preact/hooks";
import { useSession } from "../../state/session.tsx";

const FINAL: readonly string[] = ["succeeded", "failed", "cancelled"];
/**
 * This page causes ledger entries itself. If the ledger grows by this many, others are active, perhaps only with tool
 * calls, which have no events.
 */
const OTHERS_ENTRIES = 40;

/** Calls `changed` when there may be more usage than was read. */
export function useChange(changed: () => void): void {
  const { feed } = useSession();
  const seen = useRef(feed.last("ledger.grown")?.size ?? null);
  useEffect(() => {
    const ends = [
      feed.listen("task.changed", ({ status }) => {
        if (FINAL.includes(status)) changed();
      }),
      feed.listen("model.called", changed),
      feed.listen("ledger.grown", ({ size }) => {
        if (seen.current !== null && size < seen.current + OTHERS_ENTRIES) return;
        if (seen.current !== null) changed();
        seen.current = size;
      }),
    ];
    return () => {
      for (const end of ends) end();
    };
  }, [feed, changed]);
}
