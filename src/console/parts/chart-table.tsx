import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { type ChartSeries, slotText } from "./chart-plot.ts";

/** A chart's data as a table, built when it is opened. Newest slot first. */
export function ChartTable({
  label,
  slots,
  stepSeconds,
  series,
  format,
}: {
  readonly label: string;
  readonly slots: readonly string[];
  readonly stepSeconds: number;
  readonly series: readonly ChartSeries[];
  readonly format: (value: number) => string;
}): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="chart-data" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        As a table<span class="unseen">: {label}</span>
      </summary>
      {isOpen && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable regions must be reachable by keyboard (WCAG 2.1.1).
        <section class="table-frame" tabIndex={0} aria-label={`${label}, as a table`}>
          <table class="small">
            <thead>
              <tr>
                <th scope="col">From</th>
                {series.map(({ name }) => (
                  <th key={name} scope="col" class="end">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {slots
                .map((slot, index) => (
                  <tr key={slot}>
                    <th scope="row" class="number nowrap">
                      <time dateTime={slot} title={`${slot.replace("T", " ").replace("Z", "")} UTC`}>
                        {slotText(slot, stepSeconds)}
                      </time>
                    </th>
                    {series.map(({ name, values }) => {
                      const value = values[index] ?? null;
                      return (
                        <td key={name} class="end number">
                          {value === null ? "–" : format(value)}
                        </td>
                      );
                    })}
                  </tr>
                ))
                .reverse()}
            </tbody>
          </table>
        </section>
      )}
    </details>
  );
}
