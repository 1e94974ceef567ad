import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Agent, Approval, Connector } from "../../../http/api.ts";
import { Status } from "../../parts/badge.tsx";
import { useSession } from "../../state/session.tsx";
import { type Loaded, useData } from "../../state/use-data.ts";
import { nameOf } from "./address.ts";
import { ArgumentsCard } from "./arguments-card.tsx";
import { AskerFacts } from "./asker-facts.tsx";
import { ContextCard } from "./context-card.tsx";
import { Decide, type DecisionAnswer } from "./decide.tsx";
import { HistoryCard } from "./history-card.tsx";
import { TimeLeft } from "./time-left.tsx";
import { ToolFacts } from "./tool-facts.tsx";
import { useStory } from "./use-story.ts";

/** An approval with everything needed to decide on it. Each approval mounts a new instance. */
export function DecisionView({
  approval,
  agent,
  connectors,
  areKeysOn,
  decided,
  refresh,
  next,
}: {
  readonly approval: Approval;
  readonly agent: Loaded<Agent>;
  readonly connectors: Loaded<{ readonly data: readonly Connector[] }>;
  readonly areKeysOn: boolean;
  readonly decided: (answer: DecisionAnswer, approval: Approval) => void;
  readonly refresh: () => void;
  readonly next: (() => void) | null;
}): JSX.Element {
  const { can } = useSession();
  const [seen, setSeen] = useState(approval);
  const mayRead = can("tasks:read");
  const task = useData("GET /v1/tasks/:id", mayRead ? { params: { id: approval.task } } : null);
  const read = useStory(mayRead ? nameOf(approval) : null);
  const { reload } = task;
  const status = useRef(approval.status);
  useEffect(() => {
    // After the decision the task continues or ends.
    if (status.current !== approval.status) reload();
    status.current = approval.status;
  }, [approval.status, reload]);
  return (
    <>
      <header class="row-between">
        <div>
          <h2 tabIndex={-1} class="break decision-title">
            {approval.tool}
          </h2>
          <p class="muted break">requested by {approval.agent}</p>
        </div>
        {approval.status === "pending" ? (
          <TimeLeft until={approval.expires_at} />
        ) : (
          <Status status={approval.status} />
        )}
      </header>
      <ArgumentsCard
        approval={approval}
        asked={read.story.asked}
        seen={seen}
        acknowledge={() => setSeen(approval)}
      />
      <div class="grid">
        <ToolFacts name={approval.tool} connectors={connectors} />
        <AskerFacts approval={approval} agent={agent} />
      </div>
      <ContextCard approval={approval} task={task} read={read} />
      <HistoryCard approval={approval} />
      <Decide approval={approval} areKeysOn={areKeysOn} decided={decided} refresh={refresh} next={next} />
    </>
  );
}
