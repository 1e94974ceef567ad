import type { ResolvedValue, SettingOrigin } from "./config.ts";
import { REDACTED, redactUrl } from "./redact.ts";

/** One line of `config show`. Contains no secrets. */
export interface ShownValue {
  readonly key: string;
  /** Null if unset. */
  readonly value: string | number | boolean | readonly string[] | null;
  readonly origin: SettingOrigin;
  readonly detail: string;
}

/**
 * The values as they may be shown: secrets as `[redacted]`, URLs without user and password. This is the JSON form.
 */
export function showConfig(values: readonly ResolvedValue[]): ShownValue[] {
  return values.map(({ key, value, secret, origin, detail }) => ({
    key,
    value: shown(value, secret),
    origin,
    detail,
  }));
}

function shown(value: ResolvedValue["value"], secret: boolean): ShownValue["value"] {
  if (value === undefined) return null;
  if (secret) return value === "" ? "" : REDACTED;
  if (typeof value === "string") return redactUrl(value);
  return value;
}

/** The text form: a table with the columns setting, value and from. */
export function configTable(values: readonly ResolvedValue[]): string {
  const rows = showConfig(values).map(({ key, value, origin, detail }) => [
    key,
    value === null ? "-" : typeof value === "object" ? value.join(", ") : String(value),
    `${origin} (${detail})`,
  ]);
  const table = [["SETTING", "VALUE", "FROM"], ...rows];
  const widths = [0, 1].map((column) => Math.max(...table.map((row) => (row[column] ?? "").length)));
  return table
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
