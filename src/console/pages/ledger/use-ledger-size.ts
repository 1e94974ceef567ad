import { useEffect, useState } from "preact/hooks";
import { useSession } from "../../state/session.tsx";

/** Entries of the ledger, as the feed tells it; 0 before it has. */
export function useLedgerSize(): number {
  const { feed } = useSession();
  const [size, setSize] = useState(() => feed.last("ledger.grown")?.size ?? 0);
  useEffect(() => feed.listen("ledger.grown", ({ size: told }) => setSize(told)), [feed]);
  return size;
}
