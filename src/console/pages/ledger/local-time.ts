/* Values of `<input type="datetime-local">` are in the reader's time zone but do not name it. REST expects UTC. */

/** `2026-03-01T09:30`, with seconds if there are any; empty for an invalid time. */
export function localOf(time: string): string {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return "";
  const day = `${padded(at.getFullYear(), 4)}-${padded(at.getMonth() + 1)}-${padded(at.getDate())}`;
  const minute = `${padded(at.getHours())}:${padded(at.getMinutes())}`;
  const seconds = at.getSeconds() === 0 ? "" : `:${padded(at.getSeconds())}`;
  return `${day}T${minute}${seconds}`;
}

/** Empty for an invalid time. */
export function utcOf(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
}

/** For example `Europe/Berlin`. */
export function zoneName(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

function padded(number: number, width = 2): string {
  return String(number).padStart(width, "0");
}
