import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** The time left to decide, by the reader's clock. The server decides when time is up. */
export function TimeLeft({ until }: { readonly until: string }): JSX.Element {
  const left = Date.parse(until) - Date.now();
  const [, tick] = useState(0);
  // Seconds are shown only near the end.
  const every = left < 2 * MINUTE_MS ? 1_000 : 15_000;
  const isOver = left <= 0;
  useEffect(() => {
    if (isOver) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), every);
    return () => clearInterval(timer);
  }, [every, isOver]);
  const level = left < 10 * MINUTE_MS ? "bad" : left < HOUR_MS ? "warn" : "plain";
  return (
    <time
      dateTime={until}
      title={`until ${until.replace("T", " ").replace("Z", "")} UTC`}
      class="number nowrap time-left"
      data-level={level}
    >
      {isOver ? "time is up" : `${leftText(left)} left`}
    </time>
  );
}

/** `3 d 4 h`, `5 h 12 min`, `12 min`, `1 min 5 s`, `45 s`. */
function leftText(ms: number): string {
  if (ms >= DAY_MS) return `${Math.floor(ms / DAY_MS)} d ${Math.floor((ms % DAY_MS) / HOUR_MS)} h`;
  if (ms >= HOUR_MS) return `${Math.floor(ms / HOUR_MS)} h ${Math.floor((ms % HOUR_MS) / MINUTE_MS)} min`;
  if (ms >= 2 * MINUTE_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  return seconds >= 60 ? `1 min ${seconds - 60} s` : `${seconds} s`;
}
