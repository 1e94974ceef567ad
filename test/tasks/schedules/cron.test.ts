import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cronProblem, isTimezone, nextTime } from "../../../src/tasks/schedules/cron.ts";

/** The first times, after a given moment, at which an expression is due. */
function times(cron: string, timezone: string, from: string, count: number): string[] {
  const found: string[] = [];
  for (let at: number | null = Date.parse(from); found.length < count; ) {
    at = nextTime(cron, timezone, at);
    if (at === null) break;
    found.push(new Date(at).toISOString().replace(":00.000Z", "Z"));
  }
  return found;
}

describe("refused", () => {
  test.each([
    "",
    "* * * *",
    "* * * * * *",
    "0 0 1 1 * 2030",
    "60 * * * *",
    "* 24 * * *",
    "* * 0 * *",
    "* * * 13 *",
    "*/0 * * * *",
    "5-1 * * * *",
    "@reboot",
    "@never",
    "2026-05-05T00:00:00",
    "* * * * *\n",
    "a b c d e",
    "$(id) * * * *",
  ])("%j is not an expression", (cron) => {
    expect(cronProblem(cron)).toMatch(/^(must be five fields|is not a cron expression)/);
  });

  test.each(["", "Nope/Zone", "+02:00", "-05", "Europe/Berlin ", "../etc/passwd", "Europe\u0000/Berlin"])(
    "%j is not a time zone",
    (zone) => {
      expect(isTimezone(zone)).toBe(false);
    },
  );

  test("a day that never comes has no time", () => {
    expect(times("0 0 30 2 *", "UTC", "2026-01-01T00:00:00Z", 1)).toEqual([]);
  });
});

describe("times", () => {
  test.each([
    [
      "every minute",
      "*/1 * * * *",
      "UTC",
      "2026-12-31T23:58:30Z",
      ["2026-12-31T23:59Z", "2027-01-01T00:00Z"],
    ],
    ["the moment itself is excluded", "* * * * *", "UTC", "2026-01-01T00:00:00Z", ["2026-01-01T00:01Z"]],
    ["leap days", "0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]],
    ["no leap day in 2100", "0 0 29 2 *", "UTC", "2096-02-29T00:00:00Z", ["2104-02-29T00:00Z"]],
    ["the 31st", "0 0 31 * *", "UTC", "2026-01-31T00:00:00Z", ["2026-03-31T00:00Z", "2026-05-31T00:00Z"]],
    ["a name", "@daily", "America/New_York", "2026-01-01T06:00:00Z", ["2026-01-02T05:00Z"]],
    ["weekdays", "0 9 * * MON-FRI", "UTC", "2026-01-02T10:00:00Z", ["2026-01-05T09:00Z"]],
    [
      "a time that daylight saving time skips occurs just after the gap",
      "30 2 * * *",
      "Europe/Berlin",
      "2026-03-28T00:00:00Z",
      ["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"],
    ],
    [
      "a time that occurs twice runs once",
      "30 2 * * *",
      "Europe/Berlin",
      "2026-10-24T00:00:00Z",
      ["2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"],
    ],
    [
      "the same in New York",
      "30 1 * * *",
      "America/New_York",
      "2026-10-31T12:00:00Z",
      ["2026-11-01T05:30Z", "2026-11-02T06:30Z"],
    ],
    [
      "intervals continue through both",
      "*/30 * * * *",
      "Europe/Berlin",
      "2026-10-25T00:10:00Z",
      ["2026-10-25T00:30Z", "2026-10-25T01:00Z", "2026-10-25T01:30Z", "2026-10-25T02:00Z"],
    ],
    [
      "a zone that changes by half an hour",
      "15 2 * * *",
      "Australia/Lord_Howe",
      "2026-10-02T00:00:00Z",
      ["2026-10-02T15:45Z", "2026-10-03T15:30Z", "2026-10-04T15:15Z"],
    ],
  ] as const)("%s", (_, cron, zone, from, expected) => {
    expect(times(cron, zone, from, expected.length)).toEqual([...expected]);
  });

  test("over a year there is one a day, in every zone, at the local time if that exists", () => {
    for (const zone of ["Europe/Berlin", "America/New_York", "Australia/Sydney", "UTC"]) {
      const found = times("30 2 * * *", zone, "2026-01-01T00:00:00Z", 365);
      const local = new Intl.DateTimeFormat("en-CA", {
        timeZone: zone,
        dateStyle: "short",
        timeStyle: "short",
        hour12: false,
      });
      const shown = found.map((time) => local.format(new Date(time)));
      expect(new Set(shown.map((each) => each.split(",")[0])).size).toBe(365);
      const odd = shown.filter((each) => !each.endsWith("02:30"));
      expect(odd.length).toBeLessThanOrEqual(1);
      for (const each of odd) expect(each).toEndWith("03:00");
    }
  });

  test("the next time is always later, and on a whole minute", () => {
    const part = (most: number) => fc.oneof(fc.constant("*"), fc.integer({ min: 1, max: most }).map(String));
    const cron = fc.tuple(part(59), part(23), part(28), part(12)).map((parts) => `${parts.join(" ")} *`);
    const zone = fc.constantFrom(
      "UTC",
      "Europe/Berlin",
      "America/St_Johns",
      "Asia/Kathmandu",
      "Africa/Casablanca",
    );
    const from = fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2060, 0, 1) });
    fc.assert(
      fc.property(cron, zone, from, (text, timezone, after) => {
        const next = nextTime(text, timezone, after);
        if (next === null) throw new Error("no time");
        expect(next).toBeGreaterThan(after);
        expect(next % 60_000).toBe(0);
        // Asking a moment before that time gives the same time.
        expect(nextTime(text, timezone, next - 1)).toBe(next);
      }),
      { numRuns: 300 },
    );
  });
});
