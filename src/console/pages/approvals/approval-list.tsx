import type { JSX } from "preact";
import type { Approval } from "../../../http/api.ts";
import { Rows } from "../../parts/rows.tsx";
import { type ApprovalsView, keyOf } from "./address.ts";
import { ApprovalRow } from "./approval-row.tsx";

const ROW_HEIGHT = 82;
/** Height of everything around the list in the window; decided approvals have filters as well. */
const AROUND = { waiting: "15rem", decided: "26rem" } as const;

/** The list of a view, scrolled to the chosen approval. */
export function ApprovalList({
  label,
  items,
  view,
  chosenKey,
  more,
}: {
  readonly label: string;
  readonly items: readonly Approval[];
  readonly view: ApprovalsView;
  readonly chosenKey: string | null;
  readonly more?: () => void;
}): JSX.Element {
  const index = items.findIndex((one) => keyOf(one) === chosenKey);
  return (
    <Rows
      label={label}
      items={items}
      rowHeight={ROW_HEIGHT}
      height={`min(${items.length * ROW_HEIGHT + 2}px, max(100dvh - ${AROUND[view.tab]}, 20rem))`}
      keyOf={keyOf}
      kept={index < 0 ? null : index}
      {...(more ? { more } : {})}
    >
      {(approval) => <ApprovalRow approval={approval} view={view} isChosen={keyOf(approval) === chosenKey} />}
    </Rows>
  );
}
