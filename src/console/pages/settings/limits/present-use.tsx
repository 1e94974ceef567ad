import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Workspace } from "../../../../http/api.ts";
import { countText, creditsText, Time } from "../../../parts/text.tsx";
import { useUsage } from "../../../state/usage.ts";

/** The used part from which a meter warns. */
const NEAR = 0.8;

export function PresentUse({
  workspace,
  reload,
  isLoading,
}: {
  readonly workspace: Workspace;
  readonly reload: () => void;
  readonly isLoading: boolean;
}): JSX.Element {
  const readAt = useMemo(() => workspace && new Date().toISOString(), [workspace]);
  const told = useUsage();
  const { limits, budget, usage } = workspace;
  const running = told?.tasks_running ?? usage.tasks_running;
  const queued = told?.tasks_queued ?? usage.tasks_queued;
  return (
    <div class="stack">
      {told && (
        <Meter
          label="Requests"
          used={told.requests_per_minute - told.requests_left}
          most={told.requests_per_minute}
          text={`${countText(told.requests_left)} of ${countText(told.requests_per_minute)} left right now`}
        />
      )}
      <Meter
        label="Tasks"
        used={running}
        most={limits.concurrent_tasks}
        text={`${countText(running)} of ${countText(limits.concurrent_tasks)} running, ${countText(queued)} waiting`}
      />
      {budget.credits_per_month === null ? (
        <div class="stack-small">
          <h3>Credits this month</h3>
          <p class="small muted number">{creditsText(usage.credits_this_month)} used, of no budget</p>
        </div>
      ) : (
        <Meter
          label="Credits this month"
          used={usage.credits_this_month}
          most={budget.credits_per_month}
          text={`${creditsText(usage.credits_this_month)} of ${creditsText(budget.credits_per_month)} used`}
        />
      )}
      <p class="row small muted">
        <span>
          Credits as of <Time at={readAt} />
        </span>
        <button type="button" class="button-small" disabled={isLoading} onClick={reload}>
          Refresh
        </button>
      </p>
      <p class="small muted">
        Months are in UTC. Used requests become available again one by one, all within a minute.
      </p>
    </div>
  );
}

function Meter({
  label,
  used,
  most,
  text,
}: {
  readonly label: string;
  readonly used: number;
  readonly most: number;
  readonly text: string;
}): JSX.Element {
  const part = most > 0 ? Math.min(1, Math.max(0, used) / most) : 1;
  return (
    <div class="stack-small">
      <h3>{label}</h3>
      <div
        class="bar-meter"
        aria-hidden="true"
        data-level={part >= 1 ? "bad" : part >= NEAR ? "warn" : "good"}
      >
        <span style={{ width: `${part * 100}%` }} />
      </div>
      <p class="small muted number">{text}</p>
    </div>
  );
}
