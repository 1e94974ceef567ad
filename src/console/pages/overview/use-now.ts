import { useEffect, useState } from "preact/hooks";

const MINUTE_MS = 60_000;

/** The time, in milliseconds since the Unix epoch, anew each minute: for what is of the last hour. */
export function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), MINUTE_MS);
    return () => clearInterval(timer);
  }, []);
  return now;
}
