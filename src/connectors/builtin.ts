import Type from "typebox";
import { defineTool, type Tool, ToolError } from "../agents/index.ts";
import { type Clock, timestamp } from "../base/clock.ts";
import type { BuiltinTool } from "./registry.ts";
import { type VaultToolParts, vaultTools } from "./vault-tools.ts";

/** The tools that are always there, under the names that tasks list them by. */
export function builtinTools(parts: VaultToolParts): readonly BuiltinTool[] {
  const now = timeNow(parts.clock);
  return [...vaultTools(parts), { name: now.name, make: () => now }];
}

function timeNow(clock: Pick<Clock, "now">): Tool {
  return defineTool({
    name: "time.now",
    description: "The present time in UTC, and in a time zone (IANA name) where one is given.",
    input: Type.Object(
      { time_zone: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })) },
      { additionalProperties: false },
    ),
    idempotent: true,
    execute({ time_zone }) {
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
