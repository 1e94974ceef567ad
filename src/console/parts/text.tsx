import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

const DAY_MS = 86_400_000;
const SHORT = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const LONG = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const WHOLE = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium",
  timeStyle: "medium",
});
const COUNT = new Intl.NumberFormat();
const CREDITS = new Intl.NumberFormat(undefined, { maximumFractionDigits: 6 });

/**
 * A time in the reader's zone: the hour if it is today, otherwise with its date. The tooltip and the `datetime`
 * attribute are in UTC.
 */
export function Time({
  at,
  whole = false,
}: {
  readonly at: string | null;
  readonly whole?: boolean;
}): JSX.Element {
  if (at === null) return <span class="muted">–</span>;
  const date = new Date(at);
  const isRecent = Math.abs(Date.now() - date.getTime()) < DAY_MS / 2;
  const format = whole ? WHOLE : isRecent ? SHORT : LONG;
  return (
    <time dateTime={at} title={`${at.replace("T", " ").replace("Z", "")} UTC`} class="number">
      {format.format(date)}
    </time>
  );
}

/** A duration. If `to` is null, the time elapsed until now. */
export function Lasting({
  from,
  to,
}: {
  readonly from: string | null;
  readonly to: string | null;
}): JSX.Element {
  const isOpen = from !== null && to === null;
  const [, tick] = useState(0);
  useEffect(() => {
    if (!isOpen) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), 1_000);
    return () => clearInterval(timer);
  }, [isOpen]);
  if (from === null) return <span class="muted">–</span>;
  const end = to === null ? Date.now() : Date.parse(to);
  return <span class="number">{durationText(Math.max(0, end - Date.parse(from)))}</span>;
}

/** Milliseconds in words: `420 ms`, `3.2 s`, `4 min 10 s`, `2 h 5 min`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

export function countText(count: number): string {
  return COUNT.format(count);
}

export function creditsText(credits: number): string {
  return CREDITS.format(credits);
}

/** `1 task`, `2 tasks`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** A long id, shortened to its end, the part in which ids differ. The tooltip shows the full id. */
export function shortId(id: string): string {
  const mark = id.indexOf("_");
  return id.length <= 18 ? id : `${id.slice(0, mark + 1)}…${id.slice(-8)}`;
}
