import type { JSX } from "preact";
import type { Approval } from "../../../http/api.ts";
import { Empty } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { useSession } from "../../state/session.tsx";
import type { Pages } from "../../state/use-pages.ts";
import { type ApprovalsView, addressOf, WAITING } from "./address.ts";
import { ApprovalList } from "./approval-list.tsx";
import { Filters } from "./filters.tsx";
import type { PendingApprovals } from "./use-waiting.ts";

/** The list of the current view, or its loading, error or empty state. */
export function ListPane({
  view,
  waiting,
  decided,
  chosenKey,
}: {
  readonly view: ApprovalsView;
  readonly waiting: PendingApprovals;
  readonly decided: Pages<Approval>;
  readonly chosenKey: string | null;
}): JSX.Element {
  const isWaiting = view.tab === "waiting";
  const isEmpty = isWaiting ? waiting.items?.length === 0 : decided.isWhole && decided.items.length === 0;
  return (
    <div class="approvals-list" data-empty={isEmpty}>
      {isWaiting ? (
        <WaitingList waiting={waiting} chosenKey={chosenKey} />
      ) : (
        <>
          <Filters view={view} seen={[...(waiting.items ?? []), ...decided.items]} />
          <DecidedList view={view} decided={decided} chosenKey={chosenKey} />
        </>
      )}
    </div>
  );
}

function WaitingList({
  waiting: { items, problem, reload },
  chosenKey,
}: {
  readonly waiting: PendingApprovals;
  readonly chosenKey: string | null;
}): JSX.Element {
  return (
    <>
      <ProblemNote problem={problem} retry={reload} />
      {items === undefined && !problem && <Loading />}
      {items?.length === 0 && <NothingWaits />}
      {items !== undefined && items.length > 0 && (
        <ApprovalList label="Pending calls" items={items} view={WAITING} chosenKey={chosenKey} />
      )}
    </>
  );
}

function NothingWaits(): JSX.Element {
  const { can } = useSession();
  return (
    <Empty
      title="Nothing is waiting for a person"
      action={
        can("agents:read") && (
          <a class="button" href="/console/agents">
            Choose what needs approval
          </a>
        )
      }
    >
      When an agent wants to call a tool that needs approval, its task pauses and the call appears here until
      somebody decides or the time is up. Tools that their connector marks as destructive need it by
      themselves; name others in the agent's approvals, such as <code>github.*</code>.
    </Empty>
  );
}

function DecidedList({
  view,
  decided: { items, problem, isLoading, isWhole, more, reload },
  chosenKey,
}: {
  readonly view: ApprovalsView;
  readonly decided: Pages<Approval>;
  readonly chosenKey: string | null;
}): JSX.Element {
  const isFiltered = view.agent !== "" || view.tool !== "" || view.decision !== "decided";
  return (
    <>
      <ProblemNote problem={problem} retry={reload} />
      {items.length === 0 && isLoading && <Loading />}
      {items.length === 0 && isWhole && isFiltered && (
        <Empty
          title="No matches"
          action={
            <a class="button" href={addressOf({ ...WAITING, tab: "decided" })}>
              Show all
            </a>
          }
        >
          Enter complete names of agents and tools, such as <code>github.merge</code>.
        </Empty>
      )}
      {items.length === 0 && isWhole && !isFiltered && (
        <Empty title="Nothing has been decided yet">
          Approved, denied and expired calls appear here, with who decided, when and why.
        </Empty>
      )}
      {items.length > 0 && (
        <ApprovalList label="Decided calls" items={items} view={view} chosenKey={chosenKey} more={more} />
      )}
    </>
  );
}
