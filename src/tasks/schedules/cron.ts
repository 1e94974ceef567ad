import { Cron } from "croner";

/** Five fields, or a name such as `@daily`: no seconds, no years, no dates, which croner would read as well. */
const FORM = /^(?:@[a-z]{4,10}|[0-9A-Za-z*,/#?+-]+(?: +[0-9A-Za-z*,/#?+-]+){4})$/;
/** `Area/Place` or `UTC`; never an offset, which knows nothing of summer time. */
const ZONE = /^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/;

/** What is wrong with an expression, in words that finish "cron: …"; undefined where nothing is. */
export function cronProblem(cron: string): string | undefined {
  if (!FORM.test(cron)) return "must be five fields (minute hour day month weekday) or a name such as @daily";
  try {
    parse(cron, "UTC");
    return undefined;
  } catch (error) {
    // The library's words, without its name: they say which field is wrong.
    const said = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : "";
    return `is not a cron expression${said === "" ? "" : ` (${said.slice(0, 200)})`}`;
  }
}

/** Whether it is a time zone of the IANA database. */
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
 * The first time of an expression after `after`, in milliseconds since the Unix epoch; null where there is none any more.
 * A time of the day that summer time leaves out comes at the first moment after it, one that comes twice comes once; what
 * comes at intervals goes on at them.
 * @throws TypeError for what `cronProblem` or `isTimezone` refuses
 */
export function nextTime(cron: string, timezone: string, after: number): number | null {
  return parse(cron, timezone).nextRun(new Date(after))?.getTime() ?? null;
}

/** It is asked for times alone: croner's own timers know no injected clock. */
function parse(cron: string, timezone: string): Cron {
  return new Cron(cron, { timezone, mode: "5-part", paused: true });
}
