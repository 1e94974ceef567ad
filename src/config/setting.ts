import type { Static, TSchema } from "typebox";
import { type Validator, validator } from "../base/schema.ts";
import type { Kind } from "./kinds.ts";

/** One row of the table of settings. */
export interface Setting<Schema extends TSchema = TSchema> extends Kind<Schema> {
  /** Dotted place in the file. A segment in angle brackets stands for any name: `providers.<provider>.kind`. */
  readonly key: string;
  readonly path: readonly string[];
  /** The environment variable; undefined where only the file can say it. */
  readonly env: string | undefined;
  readonly flag: string | undefined;
  /** False for what has to be known before the file is read, and for secrets that do not belong in one. */
  readonly inFile: boolean;
  /** Must be given wherever the thing it belongs to (a provider, a price, a tier) is. */
  readonly required: boolean;
  readonly default: string | number | boolean | undefined;
  /** What stands for a default that is worked out, in words. */
  readonly defaultText: string | undefined;
  /** One sentence that a person learns from, with the unit. */
  readonly help: string;
  /** The value is shown nowhere: not by `config show`, not in an error. */
  readonly secret: boolean;
  is(value: unknown): value is Static<Schema>;
}

interface Row {
  readonly help: string;
  readonly default?: string | number | boolean;
  readonly defaultText?: string;
  readonly flag?: string;
  readonly env?: false;
  readonly inFile?: false;
  readonly required?: true;
  readonly secret?: true;
}

/** Makes a row. The variable follows from the key, so that the two cannot differ. */
export function setting<Schema extends TSchema>(key: string, kind: Kind<Schema>, row: Row): Setting<Schema> {
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
