import type { Static, TSchema } from "typebox";
import { type Validator, validator } from "../base/schema.ts";
import type { SettingKind } from "./setting-kinds.ts";

/** One row of the table of settings. */
export interface Setting<Schema extends TSchema = TSchema> extends SettingKind<Schema> {
  /** The dotted key in the file. A segment in angle brackets stands for any name: `providers.<provider>.kind`. */
  readonly key: string;
  readonly path: readonly string[];
  /** The environment variable; undefined if only the file can set it. */
  readonly env: string | undefined;
  readonly flag: string | undefined;
  /** False for settings needed before the file is read, and for secrets that do not belong in a file. */
  readonly inFile: boolean;
  /** Whether each item that it belongs to (a provider, a price or a tier) requires it. */
  readonly required: boolean;
  readonly default: string | number | boolean | undefined;
  /** Describes a computed default. */
  readonly defaultText: string | undefined;
  /** One sentence that explains the setting, with its unit. */
  readonly help: string;
  /** Whether the value is secret. Such a value is never shown, neither by `config show` nor in errors. */
  readonly secret: boolean;
  is(value: unknown): value is Static<Schema>;
}

interface SettingRow {
  readonly help: string;
  readonly default?: string | number | boolean;
  readonly defaultText?: string;
  readonly flag?: string;
  readonly env?: false;
  readonly inFile?: false;
  readonly required?: true;
  readonly secret?: true;
}

/** Creates a row. The variable's name is derived from the key, so the two always agree. */
export function setting<Schema extends TSchema>(
  key: string,
  kind: SettingKind<Schema>,
  row: SettingRow,
): Setting<Schema> {
  const path = key.split(".");
  const fileOnly = row.env === false || path.some(isPlaceholder);
  let compiled: Validator<Schema> | undefined;
  return {
    ...kind,
    key,
    path,
    env: fileOnly ? undefined : `GATEHOUSE_${path.join("_").toUpperCase()}`,
    flag: row.flag,
    inFile: row.inFile ?? true,
    required: row.required ?? false,
    default: row.default,
    defaultText: row.defaultText,
    help: row.help,
    secret: row.secret ?? false,
    is(value): value is Static<Schema> {
      compiled ??= validator(kind.schema);
      return compiled.is(value);
    },
  };
}

export function isPlaceholder(segment: string): boolean {
  return segment.startsWith("<");
}
