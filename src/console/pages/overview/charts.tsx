import type { JSX } from "preact";
import type { UsageReport } from "../../../http/api.ts";
import { Chart, type ChartSeries } from "../../parts/chart.tsx";
import { bars, type ChartStyle, LINES } from "../../parts/chart-plot.ts";
import { Card } from "../../parts/page.tsx";
import { countText, creditsText, durationText, plural } from "../../parts/text.tsx";
import {
  clientSeries,
  creditSeries,
  errorSeries,
  latencySeries,
  sumOf,
  taskSeries,
  toolSeries,
} from "./chart-series.ts";

const AMOUNTS = bars({ isWhole: false });
const COUNTS = bars({ isWhole: true });

/** A usage report as charts. */
export function Charts({ report }: { readonly report: UsageReport }): JSX.Element {
  const { totals } = report;
  const tasks = totals.tasks.succeeded + totals.tasks.failed + totals.tasks.cancelled;
  const credits = {
    look: AMOUNTS,
    format: creditsText,
    whole: (one: ChartSeries) => creditsText(sumOf(one)),
  };
  const counts = { look: COUNTS, format: countText, whole: (one: ChartSeries) => countText(sumOf(one)) };
  const latency = { look: LINES, format: durationText };
  const { task, model, tool, first_token: firstToken } = totals.latency_ms;
  const taskTimes = latencySeries(report.latency_ms.task);
  const modelTimes = latencySeries(report.latency_ms.model);
  const firstTokenTimes = latencySeries(report.latency_ms.first_token);
  const toolTimes = latencySeries(report.latency_ms.tool);
  return (
    <div class="charts">
      <Drawn
        title="Credits by model"
        sum={creditsText(totals.credits)}
        series={creditSeries(report.credits.by_model, report.credits.total, "Tools")}
        {...{ report, ...credits }}
      />
      <Drawn
        title="Credits by agent"
        sum={creditsText(totals.credits)}
        series={creditSeries(report.credits.by_agent, report.credits.total, "No agent")}
        {...{ report, ...credits }}
      />
      <Drawn
        title="Tasks by outcome"
        sum={countText(tasks)}
        series={taskSeries(report)}
        {...{ report, ...counts }}
      />
      <Drawn
        title="Errors"
        sum={errorsText(totals)}
        series={errorSeries(report)}
        {...{ report, ...counts }}
      />
      <Drawn
        title="How long tasks take"
        sum={spanText(task)}
        series={taskTimes}
        whole={(one) => timeText(one.name === "p50" ? task.p50 : task.p95)}
        {...{ report, ...latency }}
      />
      <Drawn
        title="How long models take"
        sum={spanText(model)}
        series={modelTimes}
        whole={(one) => timeText(one.name === "p50" ? model.p50 : model.p95)}
        {...{ report, ...latency }}
      />
      <Drawn
        title="Model calls by clients"
        sum={countText(totals.client_calls.calls)}
        series={clientSeries(report)}
        {...{ report, ...counts }}
      />
      <Drawn
        title="First token for clients"
        sum={spanText(firstToken)}
        series={firstTokenTimes}
        whole={(one) => timeText(one.name === "p50" ? firstToken.p50 : firstToken.p95)}
        {...{ report, ...latency }}
      />
      <Drawn
        title="Tool calls"
        sum={countText(totals.tools.calls)}
        series={toolSeries(report)}
        {...{ report, ...counts }}
      />
      <Drawn
        title="How long tools take"
        sum={spanText(tool)}
        series={toolTimes}
        whole={(one) => timeText(one.name === "p50" ? tool.p50 : tool.p95)}
        {...{ report, ...latency }}
      />
    </div>
  );
}

function Drawn({
  title,
  sum,
  series,
  report: { slots, step_seconds },
  look,
  format,
  whole,
}: {
  readonly title: string;
  /** The total. */
  readonly sum: string;
  readonly series: readonly ChartSeries[];
  readonly report: UsageReport;
  readonly look: ChartStyle;
  readonly format: (value: number) => string;
  readonly whole: (series: ChartSeries) => string;
}): JSX.Element {
  const isEmpty = series.every(({ values }) => values.every((value) => (value ?? 0) === 0));
  return (
    <Card title={title} actions={<span class="number muted">{sum}</span>}>
      {isEmpty ? (
        <p class="chart-nothing muted">Nothing in this time.</p>
      ) : (
        <Chart label={title} slots={slots} stepSeconds={step_seconds} {...{ series, look, format, whole }} />
      )}
    </Card>
  );
}

/** Not added up: a task that fails because of its model counts in both. */
function errorsText({ tasks, models, tools }: UsageReport["totals"]): string {
  return [
    plural(tasks.failed, "task"),
    plural(models.failed, "model call"),
    plural(tools.failed, "tool call"),
  ].join(", ");
}

function timeText(ms: number | null): string {
  return ms === null ? "–" : durationText(ms);
}

function spanText({ p50, p95 }: { readonly p50: number | null; readonly p95: number | null }): string {
  return p50 === null ? "" : `median ${timeText(p50)}, p95 ${timeText(p95)}`;
}
