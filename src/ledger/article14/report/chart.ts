import type { Series, Timeline } from "../figures/timeline.ts";
import { type Html, html } from "./html.ts";
import { count } from "./words.ts";

const WIDTH = 720;
const HEIGHT = 190;
const LEFT = 44;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 26;
const LABELS = 6;
const DAY = 86_400_000;

/** Counts over time as stacked bars. The legend, the description and the total give the same information in words. */
export function timeChart({
  id,
  title,
  series,
  names = {},
  timeline,
}: {
  readonly id: string;
  readonly title: string;
  readonly series: readonly Series[];
  /** The labels of series whose label differs from their name. */
  readonly names?: { readonly [name in Series]?: string };
  readonly timeline: Timeline;
}): Html {
  const totals = series.map((name) => ({ name: names[name] ?? name, total: timeline.total(name) }));
  const parts = Array.from({ length: timeline.length }, (_, part) => part);
  const highest = Math.max(
    ...parts.map((part) => series.reduce((sum, name) => sum + timeline.at(part, name), 0)),
  );
  if (highest === 0) {
    return html`<figure><figcaption>${title}</figcaption><p class="none">${totals.map(({ name }) => name).join(", ")}: none recorded.</p></figure>`;
  }
  const said = totals.map(({ name, total }) => `${name}: ${count(total)}`).join(", ");
  const step = stepOf(highest);
  const top = Math.max(step, Math.ceil(highest / step) * step);
  const y = (value: number) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const slot = (WIDTH - LEFT - RIGHT) / timeline.length;
  const x = (part: number) => LEFT + part * slot;
  const lines: Html[] = [];
  for (let value = 0; value <= top; value += step) {
    lines.push(
      html`<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${round(y(value))}" y2="${round(y(value))}"/><text class="tick" x="${LEFT - 6}" y="${round(y(value) + 3)}" text-anchor="end">${count(value)}</text>`,
    );
  }
  const bars = parts.flatMap((part) => {
    let below = 0;
    return series.map((name, place) => {
      const value = timeline.at(part, name);
      if (value === 0) return null;
      const bottom = below;
      below += value;
      return html`<rect class="s${place}" x="${round(x(part) + slot * 0.12)}" width="${round(slot * 0.76)}" y="${round(y(below))}" height="${round(y(bottom) - y(below))}"/>`;
    });
  });
  const every = Math.max(1, Math.ceil(timeline.length / LABELS));
  const labels = parts
    .filter((part) => part % every === 0)
    .map(
      (part) =>
        html`<text class="tick" x="${round(x(part) + slot / 2)}" y="${HEIGHT - 8}" text-anchor="middle">${labelOf(timeline, part)}</text>`,
    );
  return html`<figure>
<figcaption>${title} <span class="unit">one bar: ${widthOf(timeline.width)}, times in UTC</span></figcaption>
<svg role="img" aria-labelledby="${id}-title ${id}-desc" viewBox="0 0 ${WIDTH} ${HEIGHT}" xmlns="http://www.w3.org/2000/svg">
<title id="${id}-title">${title}</title>
<desc id="${id}-desc">${said}. From ${new Date(timeline.start).toISOString()}, one bar for ${widthOf(timeline.width)}.</desc>
${lines}${bars}${labels}
</svg>
<ul class="legend">${totals.map(
    ({ name, total }, place) =>
      html`<li><svg class="key" viewBox="0 0 10 10" aria-hidden="true"><rect class="s${place}" width="10" height="10"/></svg>${name} <b>${count(total)}</b></li>`,
  )}</ul>
</figure>`;
}

/** A round step that divides the height into two to five parts. */
function stepOf(highest: number): number {
  const rough = Math.max(1, highest / 4);
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 5]) if (factor * power >= rough) return factor * power;
  return 10 * power;
}

function labelOf({ start, width }: Timeline, part: number): string {
  const time = new Date(start + part * width).toISOString();
  return width < DAY ? `${time.slice(5, 10)} ${time.slice(11, 16)}` : time.slice(0, 10);
}

function widthOf(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 60) return minutes === 1 ? "1 minute" : `${minutes} minutes`;
  if (minutes < 1_440) return minutes === 60 ? "1 hour" : `${minutes / 60} hours`;
  return minutes === 1_440 ? "1 day" : `${minutes / 1_440} days`;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
