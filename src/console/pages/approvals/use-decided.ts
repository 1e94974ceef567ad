import { useEffect, useRef } from "preact/hooks";
import type { Approval, List } from "../../../http/api.ts";
import { call } from "../../api/client.ts";
import { type Pages, usePages } from "../../state/use-pages.ts";
import { type ApprovalsView, keyOf } from "./address.ts";
import type { ApprovalNews } from "./news.ts";

const PAGE = 50;
const NOTHING: List<Approval> = { data: [], next_cursor: null };

/** Decided approvals that match the view's filters, newest first. Reads nothing for a view of waiting approvals. */
export function useDecided(news: ApprovalNews, view: ApprovalsView): Pages<Approval> {
  const isShown = view.tab === "decided";
  const { agent, tool, decision: status } = view;
  const pages = usePages(isShown ? JSON.stringify([agent, tool, status]) : "", async (cursor, signal) => {
    if (!isShown) return NOTHING;
    const query = {
      status,
      limit: PAGE,
      ...(agent === "" ? {} : { agent }),
      ...(tool === "" ? {} : { tool }),
      ...(cursor === undefined ? {} : { cursor }),
    };
    return call("GET /v1/approvals", { query, signal });
  });

  const { change, reload } = pages;
  const current = useRef(view);
  current.current = view;
  useEffect(
    () =>
      news.listen({
        changed: (told) => current.current.tab === "decided" && told.status !== "pending",
        read: (approvals) => {
          if (current.current.tab === "decided") {
            change((items) => merge(items, approvals, current.current));
          }
        },
        reload: () => {
          if (current.current.tab === "decided") reload();
        },
      }),
    [news, change, reload],
  );
  return pages;
}

/** Merges the read approvals that match the view into the list. */
function merge(
  items: readonly Approval[],
  read: readonly Approval[],
  view: ApprovalsView,
): readonly Approval[] {
  const names = new Set(read.map(keyOf));
  const oldest = items.at(-1)?.presented_at ?? "";
  // Approvals older than the list are on a later page.
  const added = read.filter((one) => isIn(view, one) && (items.length < PAGE || one.presented_at >= oldest));
  return [...items.filter((one) => !names.has(keyOf(one))), ...added].sort((a, b) =>
    a.presented_at < b.presented_at ? 1 : a.presented_at > b.presented_at ? -1 : 0,
  );
}

function isIn({ agent, tool, decision }: ApprovalsView, approval: Approval): boolean {
  if (agent !== "" && agent !== approval.agent) return false;
  if (tool !== "" && tool !== approval.tool) return false;
  if (decision !== "decided") return approval.status === decision;
  return approval.status !== "pending" && approval.status !== "withdrawn";
}
