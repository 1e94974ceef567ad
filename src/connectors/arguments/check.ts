import type { TSchema } from "typebox";
import type { JsonObject, JsonSchema, JsonValue } from "../../agents/index.ts";
import type { FieldError } from "../../base/errors.ts";
import { type Validator, validator } from "../../base/schema.ts";
import { type Bulk, bulkOf } from "./bulk.ts";
import { relax, type SafeSchema } from "./relax.ts";

/** Returns the errors in a tool's arguments; empty if they are valid. Never throws. */
export type ArgumentCheck = (input: JsonObject) => readonly FieldError[];

/**
 * Maximum number of steps of about a nanosecond, as measured with typebox 1.4.3. A check blocks every other request.
 */
const MOST_STEPS = 40_000_000;
/** Checking one value against one schema. */
const NODE = 400;
/** Per pair of schemas: a choice copies the list of its matching branches for each match. */
const TWO_BRANCHES = 2;
/** Comparing one character: with the limits on a string's length, and with each string of an `enum`. */
const CHARACTER = 4;
const CHARACTER_OF_NODE = 0.4;
/** Arguments with more values than this are refused before they are checked: see `errors` of `base/schema.ts`. */
const MOST_VALUES = 10_000;

/** Like `ArgumentCheck`, for any value. */
export type ValueCheck = (value: JsonValue) => readonly FieldError[];

interface Compiled {
  readonly validator: Validator<TSchema>;
  readonly nodes: number;
}

/**
 * Checks arguments against an untrusted schema: neither compiling it nor checking against it takes longer than about
 * 50 ms, whatever the schema and the arguments are. Patterns, formats, and arguments that might take longer are left
 * to the upstream, which checks its arguments in any case. Arguments that the schema accepts are never refused.
 * @param read parses the schema; the result is not kept
 */
export function argumentCheck(read: () => JsonSchema): ArgumentCheck {
  // Compiled at the first call: clients list hundreds of tools and call a few.
  let compiled: Compiled | null | undefined;
  return (input) => {
    if (compiled === undefined) compiled = compile(read());
    const bulk = bulkOf(input, MOST_VALUES);
    if (!compiled || (bulk && !isAffordable(compiled, bulk))) return [];
    return errorsOf(compiled, input);
  };
}

/**
 * Checks values against an untrusted schema as strictly as the schema says, within the same time. `format` is an annotation
 * (JSON Schema 2020-12, Validation, section 7.2.1). Values that might take longer are refused.
 * @returns null if the schema uses something that `relax` cannot copy exactly
 */
export function exactCheck(schema: JsonSchema): ValueCheck | null {
  const safe = relax(schema, "annotations");
  if (!safe.isExact) return null;
  // Compiled at the first value: a request that is only checked has none.
  let compiled: Compiled | undefined;
  return (value) => {
    compiled ??= compileSafe(safe);
    const bulk = bulkOf(value, MOST_VALUES);
    if (!bulk || !isAffordable(compiled, bulk)) return [{ path: "", message: "is too large to be checked" }];
    return compiled.validator.errors(value);
  };
}

function compile(schema: JsonSchema): Compiled | null {
  try {
    return compileSafe(relax(schema));
  } catch {
    // A schema that cannot be compiled is left to its own server to check.
    return null;
  }
}

function compileSafe({ schema: safe, nodes }: SafeSchema): Compiled {
  const made = validator<TSchema>(safe === false ? { not: {} } : safe === true ? {} : safe);
  // Compile now, where the caller expects a failure.
  made.is(undefined);
  return { validator: made, nodes };
}

/** Whether the check is short even if every value meets every schema. */
function isAffordable({ nodes }: Compiled, { values, characters }: Bulk): boolean {
  const ofValues = values * nodes * (NODE + TWO_BRANCHES * nodes);
  return ofValues + characters * (CHARACTER + CHARACTER_OF_NODE * nodes) <= MOST_STEPS;
}

function errorsOf({ validator: { errors } }: Compiled, input: JsonObject): readonly FieldError[] {
  try {
    return errors(input);
  } catch {
    // The arguments are nested too deeply for the stack. Leave the check to the upstream.
    return [];
  }
}
