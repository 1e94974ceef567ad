import type { JSX } from "preact";
import { useLocation } from "preact-iso";
import { Empty, Page, Tabs } from "../../parts/page.tsx";
import { useSession } from "../../state/session.tsx";
import { Entries } from "./entries.tsx";
import { ExportTab } from "./export-tab.tsx";
import { filterOf, type LedgerFilter, type LedgerTab, ledgerAddress } from "./filters.ts";
import { Head } from "./head.tsx";
import { type OwnReads, useOwnReads } from "./own-reads.ts";
import { VerifyTab } from "./verify-tab.tsx";

const TABS: readonly (readonly [LedgerTab, string])[] = [
  ["entries", "Entries"],
  ["verify", "Verify in this browser"],
  ["export", "Export"],
];

/** The ledger: its entries, proofs, exports and verification. */
export function Ledger(): JSX.Element {
  const { can } = useSession();
  return (
    <Page
      title="Ledger"
      lead="Every request, decision and action, with who made it. Each entry contains the hash of the previous one, so no entry can be changed unnoticed."
    >
      {can("ledger:read") ? <Readable /> : <NotReadable />}
    </Page>
  );
}

function Readable(): JSX.Element {
  const { query } = useLocation();
  const ownReads = useOwnReads();
  const filter = filterOf(query);
  const tab = TABS.find(([name]) => name === query.tab)?.[0] ?? "entries";
  return (
    <>
      <Head ownReads={ownReads} />
      <Tabs
        label="Ledger"
        of={TABS.map(([name, title]) => [ledgerAddress(filter, name), title])}
        current={ledgerAddress(filter, tab)}
      />
      <Tab tab={tab} filter={filter} ownReads={ownReads} />
    </>
  );
}

function Tab({
  tab,
  filter,
  ownReads,
}: {
  readonly tab: LedgerTab;
  readonly filter: LedgerFilter;
  readonly ownReads: OwnReads;
}): JSX.Element {
  if (tab === "verify") return <VerifyTab filter={filter} />;
  if (tab === "export") return <ExportTab filter={filter} />;
  return <Entries filter={filter} ownReads={ownReads} />;
}

export function NotReadable(): JSX.Element {
  return (
    <Empty title="You may not read the ledger">
      Your token lacks the scope <code>ledger:read</code>. Sign in with one that has it, or ask the person who
      issued yours.
    </Empty>
  );
}
