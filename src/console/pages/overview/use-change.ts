import { useEffect, useRef } from "preact/hooks";
import { useSession } from "../../state/session.tsx";

const FINAL: readonly string[] = ["succeeded", "failed", "cancelled"];
/**
 * A page that looks on makes entries itself. When the ledger has grown by so many, others have been at work, perhaps with
 * tools alone, of which no event tells.
 */
const OTHERS_ENTRIES = 40;

/** Calls `changed` whenever what was used may be more than was read. */
export function useChange(changed: () => void): void {
  const { feed } = useSession();
  const seen = useRef(feed.last("ledger.grown")?.size ?? null);
  useEffect(() => {
    const ends = [
      feed.listen("task.changed", ({ status }) => {
        if (FINAL.includes(status)) changed();
      }),
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
