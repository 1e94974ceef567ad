import { MEMORY_SCOPE, MEMORY_SCOPE_LENGTH } from "../../access/memory-scope.ts";
import { OperatorError } from "../../base/errors.ts";
import { METADATA_KEY } from "../../vault/fields.ts";

const SCOPE = new RegExp(MEMORY_SCOPE);
const KEY = new RegExp(METADATA_KEY, "u");

/** @throws OperatorError if it is not a memory scope */
export function checkScope(scope: string): void {
  if (scope.length > MEMORY_SCOPE_LENGTH || !SCOPE.test(scope)) {
    throw wrong("--scope", "must be a path such as support or legal/contracts, in lower case", scope);
  }
}

export type MetadataArguments = Readonly<Record<string, string | number | boolean>>;

/**
 * `key=value` is text; `key:=value` is a number, `true` or `false`. Metadata and filters distinguish between them.
 * @throws OperatorError
 */
export function readPairs(option: string, pairs: readonly string[] = []): MetadataArguments {
  const read: Record<string, string | number | boolean> = {};
  for (const pair of pairs) {
    const [, key = "", mark, text = ""] = /^([^=]*?)(:?=)(.*)$/s.exec(pair) ?? [];
    if (!KEY.test(key))
      throw wrong(option, "must be key=value, or key:=value for a number, true or false", pair);
    if (Object.hasOwn(read, key))
      throw new OperatorError(`${option} gives the key ${JSON.stringify(key)} twice`, undefined, 2);
    const value = mark === "=" ? text : numberOrBoolean(text);
    if (value === undefined) throw wrong(option, "needs a number, true or false after :=", pair);
    Object.defineProperty(read, key, { value, enumerable: true });
  }
  return read;
}

function numberOrBoolean(text: string): number | boolean | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "number" || typeof value === "boolean" ? value : undefined;
  } catch {
    return undefined;
  }
}

function wrong(option: string, why: string, given: string): OperatorError {
  return new OperatorError(`${option} ${why}, not ${JSON.stringify(given)}`, undefined, 2);
}
