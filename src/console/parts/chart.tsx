import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { type ChartSeries, type ChartStyle, colourOf, slotText, startPlot } from "./chart-plot.ts";
import { ChartTable } from "./chart-table.tsx";
import { useScheme } from "./use-scheme.ts";

export type { ChartSeries } from "./chart-plot.ts";

/**
 * Values over time. The legend shows the values of the slot under the pointer, or else the totals. The table below
 * shows the same data to readers who do not use a pointer or cannot see the chart.
 */
export function Chart({
  label,
  slots,
  stepSeconds,
  series,
  look,
  format,
  whole,
}: {
  readonly label: string;
  /** Start of each slot, RFC 3339. */
  readonly slots: readonly string[];
  readonly stepSeconds: number;
  readonly series: readonly ChartSeries[];
  readonly look: ChartStyle;
  readonly format: (value: number) => string;
  /** The total of a series over all slots. Left out if a total means nothing. */
  readonly whole?: (series: ChartSeries) => string;
}): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const scheme = useScheme();
  const [hovered, setHovered] = useState<number | null>(null);
  const formatter = useRef(format);
  formatter.current = format;
  const shown = useRef({ slots, series });
  shown.current = { slots, series };
  const shape = JSON.stringify([series.map(({ name, tone }) => [name, tone]), look, stepSeconds]);

  useEffect(() => {
    const element = frame.current;
    if (!element) return undefined;
    const made = startPlot(element, {
      ...shown.current,
      stepSeconds,
      look,
      format: (value) => formatter.current(value),
      hover: setHovered,
    });
    plot.current = made.plot;
    return () => {
      made.end();
      plot.current = null;
    };
    // Rebuild the plot only if the series or the colours change.
  }, [shape, scheme]);

  useEffect(() => {
    plot.current?.setData(look.data(slots, stepSeconds, series));
    // A new plot already has its data.
  }, [slots, series]);

  const at = hovered === null ? undefined : slots[hovered];
  return (
    <figure class="chart stack-small" aria-label={label}>
      <div ref={frame} class="chart-frame" aria-hidden="true" />
      <div class="chart-words" aria-hidden="true">
        <span class="chart-slot number">{at === undefined ? "Total" : slotText(at, stepSeconds)}</span>
        <ul class="chart-key">
          {series.map((one, index) => (
            <li key={one.name}>
              <svg viewBox="0 0 10 10" aria-hidden="true">
                <rect width="10" height="10" rx="2" fill={colourOf(one, index)} />
              </svg>
              <span class="cut" title={one.name}>
                {one.name}
              </span>
              <b class="number">{valueText(one, at === undefined ? null : hovered, format, whole)}</b>
            </li>
          ))}
        </ul>
      </div>
      <ChartTable label={label} slots={slots} stepSeconds={stepSeconds} series={series} format={format} />
    </figure>
  );
}

function valueText(
  series: ChartSeries,
  slot: number | null,
  format: (value: number) => string,
  whole: ((series: ChartSeries) => string) | undefined,
): string {
  if (slot === null) return whole?.(series) ?? "";
  const value = series.values[slot] ?? null;
  return value === null ? "–" : format(value);
}
