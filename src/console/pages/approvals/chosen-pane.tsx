import type { JSX } from "preact";
import type { Approval } from "../../../http/api.ts";
import { Empty } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { useSession } from "../../state/session.tsx";
import { useData } from "../../state/use-data.ts";
import { type ApprovalName, type ApprovalsView, addressOf, keyOf, nameOf, WAITING } from "./address.ts";
import type { DecisionAnswer } from "./decide.tsx";
import { DecisionView } from "./decision-view.tsx";
import type { SelectedApproval } from "./use-chosen.ts";

/** Maximum number of connectors read to describe the tool. */
const MOST_CONNECTORS = 200;

/** The approval named in the address, next to the list, or in its place on a small screen. */
export function ChosenPane({
  view,
  name,
  chosen: { approval, isMissing, problem, reload },
  first,
  areKeysOn,
  decided,
  next,
}: {
  readonly view: ApprovalsView;
  readonly name: ApprovalName | null;
  readonly chosen: SelectedApproval;
  /** The first approval of the list. */
  readonly first: Approval | undefined;
  readonly areKeysOn: boolean;
  readonly decided: (answer: DecisionAnswer, approval: Approval) => void;
  readonly next: (() => void) | null;
}): JSX.Element {
  const { can } = useSession();
  const isNamed = name !== null;
  // Read here rather than in the view of an approval, so that moving between approvals reads neither again.
  const connectors = useData(
    "GET /v1/connectors",
    isNamed && can("connectors:read") ? { query: { limit: MOST_CONNECTORS } } : null,
    ["connector.changed"],
  );
  const agent = useData(
    "GET /v1/agents/:name",
    approval && can("agents:read") ? { params: { name: approval.agent } } : null,
    ["agent.changed"],
  );
  return (
    <article class="approvals-detail">
      {isNamed && (
        <a class="only-narrow" href={addressOf(view)}>
          ← {view.tab === "waiting" ? "All waiting" : "All decided"}
        </a>
      )}
      {!isNamed && first && <Begin view={view} first={first} />}
      {isNamed && <ProblemNote problem={problem} retry={reload} />}
      {isNamed && !approval && !isMissing && !problem && <Loading />}
      {isMissing && (
        <Empty
          title="There is no such approval"
          action={
            <a class="button" href={addressOf(WAITING)}>
              Show waiting calls
            </a>
          }
        >
          The address may be mistyped, or its records may have been removed.
        </Empty>
      )}
      {approval && (
        <DecisionView
          key={keyOf(approval)}
          approval={approval}
          agent={agent}
          connectors={connectors}
          areKeysOn={areKeysOn}
          decided={decided}
          refresh={reload}
          next={next}
        />
      )}
    </article>
  );
}

function Begin({ view, first }: { readonly view: ApprovalsView; readonly first: Approval }): JSX.Element {
  const isWaiting = view.tab === "waiting";
  return (
    <Empty
      title={isWaiting ? "Choose a call to decide on" : "Choose a call to see what was decided"}
      action={
        <a class="button" href={addressOf(view, nameOf(first))}>
          {isWaiting ? "Start with the most urgent" : "Open the newest"}
        </a>
      }
    >
      {isWaiting
        ? "The earliest deadline comes first. Nothing is approved by waiting: calls that nobody decides on count as denied."
        : "Each shows its arguments, who decided, when and why."}{" "}
      Or press <kbd>j</kbd>.
    </Empty>
  );
}
