import { Cron } from "croner";

/** Five fields, or a name such as `@daily`: no seconds, years or dates, which croner would also accept. */
const FORM = /^(?:@[a-z]{4,10}|[0-9A-Za-z*,/#?+-]+(?: +[0-9A-Za-z*,/#?+-]+){4})$/;
/** `Area/Place` or `UTC`, but never an offset, which ignores daylight saving time. */
const ZONE = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/;

/** The problem with an expression, to be appended to "cron: "; undefined if there is none. */
export function cronProblem(cron: string): string | undefined {
  if (!FORM.test(cron)) return "must be five fields (minute hour day month weekday) or a name such as @daily";
  try {
    parse(cron, "UTC");
    return undefined;
  } catch (error) {
    // The library's message names the faulty field. Its own name is removed.
    const said = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : "";
    return `is not a cron expression${said === "" ? "" : ` (${said.slice(0, 200)})`}`;
  }
}

/** Whether the IANA database contains this time zone. */
export function isTimezone(name: string): boolean {
  if (!ZONE.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/**
 * The first time of an expression after `after`, in milliseconds since the Unix epoch; null if there is none. A time
 * skipped by daylight saving time occurs at the first moment after the gap, and a repeated time occurs once.
 * Intervals are unaffected.
 * @throws TypeError for anything that `cronProblem` or `isTimezone` rejects
 */
export function nextTime(cron: string, timezone: string, after: number): number | null {
  return parse(cron, timezone).nextRun(new Date(after))?.getTime() ?? null;
}

/** Used only to compute times: croner's own timers ignore an injected clock. */
function parse(cron: string, timezone: string): Cron {
  return new Cron(cron, { timezone, mode: "5-part", paused: true });
}
