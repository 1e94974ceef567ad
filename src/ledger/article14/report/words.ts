import { MICROS_PER_CREDIT } from "../../../base/credits.ts";

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** `1 approval`, `2 approvals`, `no approvals`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return value === 0 ? `no ${many}` : value === 1 ? `1 ${one}` : `${count(value)} ${many}`;
}

export function credits(micros: number): string {
  return (micros / MICROS_PER_CREDIT).toLocaleString("en-US", { maximumFractionDigits: 6 });
}

/** RFC 3339 in readable form, to the second. */
export function moment(ts: string | null | undefined): string {
  if (!ts) return "–";
  const found = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})/.exec(ts);
  return found ? `${found[1]} ${found[2]}` : ts;
}

export function day(ts: string): string {
  return ts.slice(0, 10);
}

/** Seconds in readable form. */
export function span(seconds: number | undefined): string {
  if (seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 60) return `${seconds < 10 ? Math.round(seconds * 10) / 10 : Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.round(hours / 24)} days`;
}

/** Cut if it would break a column. The entry contains the full text. */
export function brief(text: string, most = 120): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

/** The end of an identifier, long enough to find it by. */
export function ending(id: string | undefined): string {
  return id === undefined ? "–" : id.length <= 14 ? id : `…${id.slice(-10)}`;
}
