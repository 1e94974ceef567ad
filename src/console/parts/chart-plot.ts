import uPlot from "uplot";

export interface Series {
  readonly name: string;
  /** One a slot; null where there is nothing. */
  readonly values: readonly (number | null)[];
  /** What it means, where it means more than another one of its kind. */
  readonly tone?: "good" | "warn" | "bad" | "plain";
}

/** How series are drawn: how much there was of each as bars, one on the other, or how great each was as lines. */
export interface Look {
  readonly kind: "bars" | "lines";
  /** Whether ticks are whole numbers alone. */
  readonly isWhole: boolean;
  data(slots: readonly string[], stepSeconds: number, series: readonly Series[]): uPlot.AlignedData;
}

/** Told apart by those who see few colours as well (after Okabe and Ito), each 3:1 and more on light and on dark. */
const COLOURS = ["#0f8a7a", "#d97706", "#3b7dd8", "#b4479f", "#8a8f1d", "#c2483c", "#5e6ad2", "#2f8f4e"];
const TONES = { good: "#2f8f4e", warn: "#d97706", bad: "#c2483c", plain: "#7a858c" } as const;
const HEIGHT = 168;
const DAY_SECONDS = 86_400;
const WHOLE_STEPS = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();

export function colourOf({ tone }: Series, index: number): string {
  return tone === undefined ? (COLOURS[index % COLOURS.length] ?? TONES.plain) : TONES[tone];
}

export function bars({ isWhole }: { readonly isWhole: boolean }): Look {
  return {
    kind: "bars",
    isWhole,
    // The highest is drawn first, and the others before it.
    data: (slots, step, series) => [middles(slots, step), ...stack(series).reverse()],
  };
}

export const LINES: Look = {
  kind: "lines",
  isWhole: true,
  data: (slots, step, series) => [middles(slots, step), ...series.map(({ values }) => [...values])],
};

/** What is shown of a slot: its beginning, in the reader's zone; days are UTC's, as the server adds them up. */
export function slotText(slot: string, stepSeconds: number): string {
  const date = new Date(slot);
  return stepSeconds < DAY_SECONDS ? MOMENT.format(date) : `${UTC_DAY.format(date)} (UTC)`;
}

export interface PlotParts {
  readonly slots: readonly string[];
  readonly stepSeconds: number;
  readonly series: readonly Series[];
  readonly look: Look;
  readonly format: (value: number) => string;
  /** Told of the slot under the pointer; null: of none. */
  readonly hover: (slot: number | null) => void;
}

/** Draws into an element, as wide as it is, until `end`. */
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
  // Custom properties are not computed: a canvas is given the colour that they stand for now.
  const { color: muted, font } = getComputedStyle(element);
  const axis = { stroke: muted, font, grid: { stroke: muted, width: 0.2 }, ticks: { show: false } };
  const isDays = stepSeconds >= DAY_SECONDS;
  const one = (each: Series, index: number): uPlot.Series => {
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

/** The hour; at midnight, and of days, the day. */
function tickText(seconds: number, isDays: boolean): string {
  const date = new Date(seconds * 1_000);
  if (isDays) return UTC_DAY.format(date);
  return date.getHours() + date.getMinutes() === 0 ? DAY.format(date) : HOUR.format(date);
}

/** Seconds since the Unix epoch: a slot is drawn, and found by the pointer, around its middle. */
function middles(slots: readonly string[], stepSeconds: number): number[] {
  return slots.map((slot) => Date.parse(slot) / 1_000 + stepSeconds / 2);
}

/** Each on top of those before it. */
function stack(series: readonly Series[]): number[][] {
  let below: readonly number[] = [];
  return series.map(({ values }) => {
    const top = values.map((value, slot) => (below[slot] ?? 0) + (value ?? 0));
    below = top;
    return top;
  });
}
