import { type Clock, timestamp } from "./clock.ts";
import { LogOutput } from "./log-output.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Writes one JSON object per line to standard error. Standard output is only for a command's results. Never throws,
 * since most lines are written after something has already failed.
 */
export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

const ORDER: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/**
 * Secrets in Gatehouse's own formats (of tokens, sessions and one-time links) never reach the log, whatever field or
 * message contains them.
 */
const SECRET = /(gth[sl]?_)[0-9A-Za-z]{20,}/g;

export function createLog(
  level: LogLevel,
  clock: Pick<Clock, "now">,
  write: (line: string) => void = standardError(clock),
): Log {
  const least = ORDER[level];
  const at =
    (name: LogLevel) =>
    (message: string, fields: LogFields = {}): void => {
      if (ORDER[name] < least) return;
      const line = { ts: timestamp(clock.now()), level: name, message };
      write(`${redact(encode(line, fields))}\n`);
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function standardError(clock: Pick<Clock, "now">): (line: string) => void {
  const leftOut = (count: number) =>
    `${encode({ ts: timestamp(clock.now()), level: "warn", message: "log lines were dropped: nothing was reading them" }, { count })}\n`;
  const output = new LogOutput(process.stderr, leftOut);
  return (line) => output.write(line);
}

export const silentLog: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export function redact(text: string): string {
  return text.replace(SECRET, "$1[redacted]");
}

/** If a field cannot be converted to JSON (circular, or with a throwing getter), the line only names the fields. */
function encode(line: object, fields: LogFields): string {
  try {
    return JSON.stringify({ ...line, ...fields }, plain);
  } catch (error) {
    const why = error instanceof Error ? error.message : "unknown";
    return JSON.stringify({ ...line, unwritable: `${Object.keys(fields).join(", ")}: ${why}` });
  }
}

/** Errors and their causes become name, message and stack; everything else is converted as JSON does. */
function plain(_key: string, value: unknown): unknown {
  if (value instanceof Error) {
    return {
      name: value.name,
      message: value.message,
      stack: value.stack,
      ...(value.cause === undefined ? {} : { cause: value.cause }),
    };
  }
  return typeof value === "bigint" ? value.toString() : value;
}
