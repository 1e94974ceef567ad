import { invalidField } from "../base/errors.ts";

const RFC3339 =
  /^(?<day>\d{4}-\d{2}-\d{2})[Tt](?:[01]\d|2[0-3]):\d{2}:\d{2}(?:\.\d{1,3}(?<finer>\d{0,6}))?(?:[Zz]|[+-]\d{2}:\d{2})$/;

/**
 * An RFC 3339 time from a query, in milliseconds since the Unix epoch, rounded up. Entries have millisecond times, so
 * an entry is before the given time if and only if it is before the rounded one.
 * @throws Problem 422 that names the field
 */
export function instant(path: string, text: string): number {
  // The `+` of an offset arrives as a space if the client did not encode it.
  const given = text.replace(" ", "+");
  const parts = RFC3339.exec(given)?.groups;
  const time = parts?.day !== undefined && isDay(parts.day) ? Date.parse(given) : Number.NaN;
  if (Number.isNaN(time) || Math.abs(time) > 253_402_300_799_999) {
    throw invalidField(path, "must be an RFC 3339 time, such as 2026-01-31T08:00:00Z");
  }
  return /[1-9]/.test(parts?.finer ?? "") ? time + 1 : time;
}

/** Whether `YYYY-MM-DD` is a real day: false for 30 February, which `Date.parse` reads as a day in March. */
export function isDay(text: string): boolean {
  const day = Date.parse(`${text}T00:00:00.000Z`);
  return !Number.isNaN(day) && new Date(day).toISOString().startsWith(text);
}
