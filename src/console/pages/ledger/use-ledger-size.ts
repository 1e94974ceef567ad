import { useEffect, useState } from "preact/hooks";
import { useSession } from "../../state/session.tsx";

/** The ledger's size, from the feed; 0 before the first event. */
export function useLedgerSize(): number {
  const { feed } = useSession();
  const [size, setSize] = useState(() => feed.last("ledger.grown")?.size ?? 0);
  useEffect(() => feed.listen("ledger.grown", ({ size: told }) => setSize(told)), [feed]);
  return size;
}
