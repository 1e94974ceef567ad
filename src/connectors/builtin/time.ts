import Type from "typebox";
import { ToolError } from "../../agents/index.ts";
import { type Clock, timestamp } from "../../base/clock.ts";
import { type BuiltinTool, builtinTool } from "./tool.ts";

export function timeNow(clock: Pick<Clock, "now">): BuiltinTool {
  return builtinTool({
    name: "time.now",
    title: "The current time",
    description: "The current time in UTC, and also in a time zone (IANA name) if one is given.",
    input: Type.Object(
      { time_zone: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })) },
      { additionalProperties: false },
    ),
    annotations: { readOnlyHint: true, openWorldHint: false },
    execute(_actor, { time_zone }) {
      const now = clock.now();
      if (time_zone === undefined) return { now: timestamp(now) };
      return { now: timestamp(now), time_zone, local: localTime(now, time_zone) };
    },
  });
}

function localTime(now: number, timeZone: string): string {
  try {
    return new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium", timeZone }).format(
      now,
    );
  } catch (cause) {
    throw new ToolError(`time_zone: ${JSON.stringify(timeZone)} is not an IANA time zone.`, { cause });
  }
}
