import type { TSchema } from "typebox";
import type { JsonObject, JsonSchema } from "../../agents/index.ts";
import type { FieldError } from "../../base/errors.ts";
import { type Validator, validator } from "../../base/schema.ts";
import { type Bulk, bulkOf } from "./bulk.ts";
import { type Price, priceOf } from "./price.ts";
import { relax } from "./relax.ts";

/** Returns what is wrong with a tool's arguments; empty if they are valid. Never throws. */
export type ArgumentCheck = (input: JsonObject) => readonly FieldError[];

/** In steps of about a nanosecond. A check blocks every other request. */
const MOST_STEPS = 40_000_000;
/** Arguments with more values than this are refused before they are checked: see `errors` of `base/schema.ts`. */
const MOST_VALUES = 10_000;
/**
 * Formats backtrack: a URI of 100,000 characters took 0.7 s and was then reported as invalid; one of 10,000 takes 0.3
 * ms.
 */
const MOST_FORMAT_CHARACTERS = 10_000;

interface Compiled {
  readonly validator: Validator<TSchema>;
  readonly price: Price;
}

/**
 * Checks arguments against an untrusted schema: neither compiling it nor checking against it takes longer than about
 * 50 ms, whatever the schema and the arguments. If a full check would cost more, texts are not checked, or nothing
 * is: the upstream checks its arguments in any case. Arguments that the schema accepts are never refused.
 * @param read parses the schema; the result is not kept
 */
export function argumentCheck(read: () => JsonSchema): ArgumentCheck {
  // Compiled at the first call: clients list hundreds of tools and call a few.
  let whole: Compiled | null | undefined;
  let light: Compiled | null | undefined;
  return (input) => {
    if (whole === undefined) whole = compile(read(), true);
    const bulk = bulkOf(input, MOST_VALUES);
    let used = whole;
    if (bulk && !isAffordable(used, bulk)) {
      if (light === undefined) light = compile(read(), false);
      used = isAffordable(light, bulk) ? light : null;
    }
    return used ? errorsOf(used, input) : [];
  };
}

function compile(schema: JsonSchema, readsTexts: boolean): Compiled | null {
  try {
    const safe = relax(schema, readsTexts);
    const made = validator<TSchema>(
      safe.schema === false ? { not: {} } : safe.schema === true ? {} : safe.schema,
    );
    // Compile now, where a failure is caught.
    made.is(undefined);
    return { validator: made, price: priceOf(safe) };
  } catch {
    // A schema that cannot be compiled is left to its own server to check.
    return null;
  }
}

function errorsOf({ validator: { errors } }: Compiled, input: JsonObject): readonly FieldError[] {
  try {
    return errors(input);
  } catch {
    // The arguments are nested too deeply for the stack. Leave the check to the upstream.
    return [];
  }
}

function isAffordable(compiled: Compiled | null, bulk: Bulk): compiled is Compiled {
  if (!compiled) return false;
  const { values, characters, hasFormats } = compiled.price;
  if (hasFormats && bulk.longest > MOST_FORMAT_CHARACTERS) return false;
  let steps = 0;
  for (const [depth, each] of values.entries()) steps += each * (bulk.values[depth] ?? 0);
  for (const [depth, each] of characters.entries()) steps += each * (bulk.characters[depth] ?? 0);
  return steps <= MOST_STEPS;
}
