import type { UsageReport } from "../../../http/api.ts";
import type { ChartSeries } from "../../parts/chart-plot.ts";

type Breakdown = UsageReport["credits"]["by_agent"];

export function sumOf({ values }: ChartSeries): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}

/**
 * The costliest series, the sum of the others and, as `rest`, the cost that belongs to no series. Series without cost
 * are left out.
 */
export function creditSeries(breakdown: Breakdown, total: readonly number[], rest: string): ChartSeries[] {
  if (breakdown === null) return [];
  const named: ChartSeries[] = breakdown.top
    .filter(({ credits }) => credits > 0)
    .map(({ name, values }) => ({ name: name ?? rest, values }));
  if (breakdown.other !== null && breakdown.other.credits > 0) {
    named.push({ name: "All others", values: breakdown.other.values, tone: "plain" });
  }
  const unnamed = total.map((all, slot) => {
    const left = all - named.reduce((sum, { values }) => sum + (values[slot] ?? 0), 0);
    // Credits have six decimals; this removes floating-point error.
    return Math.max(0, Math.round(left * 1_000_000) / 1_000_000);
  });
  if (unnamed.some((value) => value > 0)) named.push({ name: rest, values: unnamed, tone: "plain" });
  return named;
}

export function taskSeries({ tasks }: UsageReport): ChartSeries[] {
  return [
    { name: "Succeeded", values: tasks.succeeded, tone: "good" },
    { name: "Failed", values: tasks.failed, tone: "bad" },
    { name: "Cancelled", values: tasks.cancelled, tone: "plain" },
  ];
}

export function errorSeries({ tasks, models, tools }: UsageReport): ChartSeries[] {
  return [
    { name: "Failed tasks", values: tasks.failed, tone: "bad" },
    { name: "Failed model calls", values: models.failed, tone: "warn" },
    { name: "Failed tool calls", values: tools.failed },
  ];
}

/** Model calls that clients have made themselves. */
export function clientSeries({ client_calls: { calls, failed, cancelled } }: UsageReport): ChartSeries[] {
  const succeeded = calls.map((all, slot) => all - (failed[slot] ?? 0) - (cancelled[slot] ?? 0));
  return [
    { name: "Succeeded", values: succeeded, tone: "good" },
    { name: "Failed", values: failed, tone: "bad" },
    { name: "Cancelled", values: cancelled, tone: "plain" },
  ];
}

export function toolSeries({ tools }: UsageReport): ChartSeries[] {
  const { calls, failed, denied, unknown } = tools;
  const succeeded = calls.map(
    (all, slot) => all - (failed[slot] ?? 0) - (denied[slot] ?? 0) - (unknown[slot] ?? 0),
  );
  return [
    { name: "Succeeded", values: succeeded, tone: "good" },
    { name: "Failed", values: failed, tone: "bad" },
    { name: "Denied", values: denied, tone: "warn" },
    { name: "Unknown", values: unknown, tone: "plain" },
  ];
}

/** The median and the 95th percentile. */
export function latencySeries({ p50, p95 }: UsageReport["latency_ms"]["task"]): ChartSeries[] {
  return [
    { name: "p50", values: p50 },
    { name: "p95", values: p95 },
  ];
}
