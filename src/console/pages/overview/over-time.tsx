import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { UsageReport } from "../../../http/api.ts";
import { type ApiProblem, offline } from "../../api/problem.ts";
import { Tabs } from "../../parts/page.tsx";
import { Loading, ProblemNote } from "../../parts/problem.tsx";
import { Time } from "../../parts/text.tsx";
import { ClientFigures } from "./client-figures.tsx";
import { RANGES, type RangeName } from "./ranges.ts";
import type { UsageReading } from "./use-usage-report.ts";

type Charts = ComponentType<{ readonly report: UsageReport }>;

const TABS = Object.entries(RANGES).map(([key, { name }]) => [`/console?range=${key}`, name] as const);

/** Usage charts. Their script is loaded after the rest of the page, so that it delays nothing above. */
export function OverTime({
  range,
  usage,
}: {
  readonly range: RangeName;
  readonly usage: UsageReading;
}): JSX.Element {
  const { Charts, problem, load } = useCharts();
  const { report, readAt } = usage;
  return (
    <section class="stack" aria-label="Over time">
      <div class="row-between">
        <h2>Over time</h2>
        <span class="muted small">
          Updated <Time at={new Date(readAt).toISOString()} />, and whenever something changes, at most once a
          minute
        </span>
      </div>
      <Tabs label="Range" of={TABS} current={`/console?range=${range}`} />
      <ProblemNote problem={problem} retry={load} />
      <ProblemNote problem={usage.problem} retry={usage.reload} />
      {report && hasClientCalls(report) && <ClientFigures report={report} />}
      {report && Charts ? <Charts report={report} /> : !problem && !usage.problem && <Loading />}
    </section>
  );
}

/** Clients may call models, or only count tokens. */
export function hasClientCalls({ totals }: UsageReport): boolean {
  return totals.client_calls.calls + totals.token_counts.requests > 0;
}

function useCharts(): {
  readonly Charts: Charts | null;
  readonly problem: ApiProblem | null;
  readonly load: () => void;
} {
  const [found, setFound] = useState<{ readonly Charts: Charts } | null>(null);
  const [problem, setProblem] = useState<ApiProblem | null>(null);
  function load(): void {
    setProblem(null);
    import("./charts.tsx").then(
      ({ Charts }) => setFound({ Charts }),
      // The script could not be loaded.
      () => setProblem(offline()),
    );
  }
  // Once, after the page has rendered.
  useEffect(load, []);
  return { Charts: found?.Charts ?? null, problem, load };
}
