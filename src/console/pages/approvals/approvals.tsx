import type { JSX } from "preact";
import { Empty, Page } from "../../parts/page.tsx";
import { useSession } from "../../state/session.tsx";
import { ApprovalsPane } from "./approvals-pane.tsx";

/** `/console/approvals`, and `/console/approvals/:task/:call` with one approval next to the list. */
export function Approvals(): JSX.Element {
  const { can } = useSession();
  if (can("approvals:write")) return <ApprovalsPane />;
  return (
    <Page title="Approvals">
      <Empty title="Your token may not see this">
        It needs the scope <code>approvals:write</code>, because everyone who can see waiting calls can decide
        on them. Sign in with a token that has it, or ask the person who issued yours.
      </Empty>
    </Page>
  );
}
