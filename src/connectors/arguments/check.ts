import type { TSchema } from "typebox";
import type { JsonObject, JsonSchema } from "../../agents/index.ts";
import type { FieldError } from "../../base/errors.ts";
import { type Validator, validator } from "../../base/schema.ts";
import { type Bulk, bulkOf } from "./bulk.ts";
import { type Price, priceOf } from "./price.ts";
import { relax } from "./relax.ts";

/** Says what is wrong with a tool's arguments; nothing where nothing is. Never throws. */
export type ArgumentCheck = (input: JsonObject) => readonly FieldError[];

/** In steps of about a nanosecond: everybody waits for it. */
const MOST_STEPS = 40_000_000;
/** With more of them, arguments are refused before anything is looked at: see `errors` of `base/schema.ts`. */
const MOST_VALUES = 10_000;
/** Formats repeat groups: a URI of 100,000 characters took 0.7 s and was then said to be none, one of 10,000 takes 0.3 ms. */
const MOST_FORMAT_CHARACTERS = 10_000;

interface Compiled {
  readonly validator: Validator<TSchema>;
  readonly price: Price;
}

/**
 * Checks arguments by a schema that came from outside, and that nobody has to trust: neither compiling it nor checking by it
 * takes longer than some fifty milliseconds, whatever the schema and the arguments are. What is left of a check for that (its
 * texts, or all of it) is the upstream's own, which checks for itself in any case. Nothing is refused that the schema takes.
 * @param read parses the schema, which is not kept
 */
export function argumentCheck(read: () => JsonSchema): ArgumentCheck {
  // At the first call: a host lists hundreds of tools and calls a few.
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
    // Compiles it here, where a failure is expected.
    made.is(undefined);
    return { validator: made, price: priceOf(safe) };
  } catch {
    // What cannot be compiled is its own server's to check.
    return null;
  }
}

function errorsOf({ validator: { errors } }: Compiled, input: JsonObject): readonly FieldError[] {
  try {
    return errors(input);
  } catch {
    // Deeper than the stack: the upstream's to check.
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
