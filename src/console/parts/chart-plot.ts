import uPlot from "uplot";

export interface ChartSeries {
  readonly name: string;
  /** One value for each slot; null if there is none. */
  readonly values: readonly (number | null)[];
  /** Emphasis of the series, if it differs from its neighbours. */
  readonly tone?: "good" | "warn" | "bad" | "plain";
}

/** How series are drawn: stacked bars for counts, lines for measurements. */
export interface ChartStyle {
  readonly kind: "bars" | "lines";
  /** Whether axis ticks are whole numbers only. */
  readonly isWhole: boolean;
  data(slots: readonly string[], stepSeconds: number, series: readonly ChartSeries[]): uPlot.AlignedData;
}

/**
 * Distinguishable with colour blindness (after Okabe and Ito), with at least 3:1 contrast on light and dark
 * backgrounds.
 */
const COLOURS = ["#0f8a7a", "#d97706", "#3b7dd8", "#b4479f", "#8a8f1d", "#c2483c", "#5e6ad2", "#2f8f4e"];
const TONES = { good: "#2f8f4e", warn: "#d97706", bad: "#c2483c", plain: "#7a858c" } as const;
const HEIGHT = 168;
const DAY_SECONDS = 86_400;
const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();

export function colourOf({ tone }: ChartSeries, index: number): string {
  return tone === undefined ? (COLOURS[index % COLOURS.length] ?? TONES.plain) : TONES[tone];
}

export function bars({ isWhole }: { readonly isWhole: boolean }): ChartStyle {
  return {
    kind: "bars",
    isWhole,
    // The tallest bar is drawn first, so the others cover it.
    data: (slots, step, series) => [middles(slots, step), ...stack(series).reverse()],
  };
}

export const LINES: ChartStyle = {
  kind: "lines",
  isWhole: true,
  data: (slots, step, series) => [middles(slots, step), ...series.map(({ values }) => [...values])],
};

/** The start of a slot, in the reader's time zone. Days are UTC days, as the server counts them. */
export function slotText(slot: string, stepSeconds: number): string {
  const date = new Date(slot);
  return stepSeconds < DAY_SECONDS ? MOMENT.format(date) : `${UTC_DAY.format(date)} (UTC)`;
}

export interface PlotParts {
  readonly slots: readonly string[];
  readonly stepSeconds: number;
  readonly series: readonly ChartSeries[];
  readonly look: ChartStyle;
  readonly format: (value: number) => string;
  /** Called with the index of the slot under the pointer, or null. */
  readonly hover: (slot: number | null) => void;
}

/** Draws into an element at the element's width, until `end` is called. */
export function startPlot(
  element: HTMLElement,
  parts: PlotParts,
): { readonly plot: uPlot; readonly end: () => void } {
  const { slots, stepSeconds, series, look } = parts;
  const plot = new uPlot(optionsFor(element, parts), look.data(slots, stepSeconds, series), element);
  const observer = new ResizeObserver(() => {
    if (element.clientWidth > 0) plot.setSize({ width: element.clientWidth, height: HEIGHT });
  });
  observer.observe(element);
  return {
    plot,
    end() {
      observer.disconnect();
      plot.destroy();
    },
  };
}

const MOMENT = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const HOUR = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const UTC_DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", timeZone: "UTC" });

function optionsFor(
  element: HTMLElement,
  { stepSeconds, series, look, format, hover }: PlotParts,
): uPlot.Options {
  // A canvas does not resolve custom properties, so it gets their computed colours.
  const { color: muted, font } = getComputedStyle(element);
  const axis = { stroke: muted, font, grid: { stroke: muted, width: 0.2 }, ticks: { show: false } };
  const isDays = stepSeconds >= DAY_SECONDS;
  const one = (each: ChartSeries, index: number): uPlot.Series => {
    const colour = colourOf(each, index);
    if (look.kind === "lines") {
      return { stroke: colour, width: 2, spanGaps: false, points: { show: true, size: 5, fill: colour } };
    }
    return { fill: colour, width: 0, points: { show: false }, ...BARS };
  };
  const drawn = series.map(one);
  return {
    width: Math.max(element.clientWidth, 200),
    height: HEIGHT,
    padding: [8, 20, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: look.kind === "lines" } },
    hooks: { setCursor: [({ cursor: { idx } }) => hover(idx ?? null)] },
    ...(isDays ? { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), "UTC") } : {}),
    scales: {
      x: { range: (_plot, low, high) => [low - stepSeconds / 2, high + stepSeconds / 2] },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      {
        ...axis,
        space: 64,
        size: 28,
        values: (_plot, splits) => splits.map((split) => tickText(split, isDays)),
      },
      {
        ...axis,
        size: 64,
        values: (_plot, splits) => splits.map(format),
        ...(look.isWhole ? { incrs: WHOLE_STEPS } : {}),
      },
    ],
    series: [{}, ...(look.kind === "bars" ? drawn.reverse() : drawn)],
  };
}

const paths = uPlot.paths.bars?.({ size: [0.8, 40] });
const BARS = paths ? { paths } : {};

/** The hour, or the day at midnight and for daily slots. */
function tickText(seconds: number, isDays: boolean): string {
  const date = new Date(seconds * 1_000);
  if (isDays) return UTC_DAY.format(date);
  return date.getHours() + date.getMinutes() === 0 ? DAY.format(date) : HOUR.format(date);
}

/** Middles of the slots, in seconds since the Unix epoch: a slot is drawn around its middle. */
function middles(slots: readonly string[], stepSeconds: number): number[] {
  return slots.map((slot) => Date.parse(slot) / 1_000 + stepSeconds / 2);
}

/** Stacks each series on those before it. */
function stack(series: readonly ChartSeries[]): number[][] {
  let below: readonly number[] = [];
  return series.map(({ values }) => {
    const top = values.map((value, slot) => (below[slot] ?? 0) + (value ?? 0));
    below = top;
    return top;
  });
}
