import type { Static, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { Settings } from "typebox/system";
import { type FieldError, Problem } from "./errors.ts";

/** A compiled typebox schema: one schema language for bodies, queries, the OpenAPI document and tool inputs. */
export interface Validator<Schema extends TSchema> {
  readonly schema: Schema;
  is(value: unknown): value is Static<Schema>;
  /**
   * Returns the value unchanged. @throws Problem 422 `validation_failed` that lists the refused fields (32 at most)
   */
  parse(value: unknown): Static<Schema>;
  errors(value: unknown): FieldError[];
}

const ERROR_LIMIT = 32;
/** Maximum number of values examined in a refused body: half a million took over a second, blocking everyone. */
const VALUE_LIMIT = 10_000;
/** Maximum number of characters of a path repeated in an error: a body may contain a name of megabytes. */
const PATH_LIMIT = 300;
Settings.Set({ maxErrors: ERROR_LIMIT });

export function validator<const Schema extends TSchema>(schema: Schema): Validator<Schema> {
  // Compiled at the first use: all schemas together take 17 ms, which startup should not wait for.
  let ready: ReturnType<typeof Compile<Schema>> | undefined;
  const compiled = () => {
    ready ??= Compile(schema);
    return ready;
  };
  const errors = (value: unknown): FieldError[] => {
    const bulk = bulkyPath(value);
    if (bulk !== undefined)
      return [{ path: bulk, message: `has too many values: at most ${VALUE_LIMIT} can be checked` }];
    return fieldErrors(compiled().Errors(value));
  };
  return {
    schema,
    is: (value): value is Static<Schema> => compiled().Check(value),
    errors,
    parse(value) {
      if (compiled().Check(value)) return value as Static<Schema>;
      const refused = errors(value);
      const first = refused[0];
      throw new Problem(
        "validation_failed",
        first ? `${first.path || "body"}: ${first.message}` : "not valid",
        {
          errors: refused,
        },
      );
    },
  };
}

/** The path at which a value exceeds the limit, as a JSON pointer. Undefined if it does not. */
function bulkyPath(root: unknown): string | undefined {
  const waiting: { path: string; value: unknown }[] = [{ path: "", value: root }];
  let left = VALUE_LIMIT;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { path, value } = next;
    if (typeof value !== "object" || value === null) continue;
    const entries = Array.isArray(value) ? value.entries() : Object.entries(value);
    for (const [key, item] of entries) {
      left -= 1;
      if (left < 0) return path.slice(0, PATH_LIMIT);
      if (typeof item === "object") waiting.push({ path: pointer(path, String(key)), value: item });
    }
  }
  return undefined;
}

/** Appends one step to a JSON pointer (RFC 6901). */
export function pointer(path: string, name: string): string {
  return `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

interface CompiledError {
  readonly keyword: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
}

/**
 * One entry per path, in the order found. Messages of several branches of a union about one path are joined with
 * "or".
 */
function fieldErrors(found: readonly CompiledError[]): FieldError[] {
  const unions = new Set(
    found.filter((error) => error.keyword === "anyOf").map((error) => error.instancePath),
  );
  const messages = new Map<string, string[]>();
  for (const error of found) {
    if (error.keyword === "anyOf" && messages.has(error.instancePath)) continue;
    for (const { path: whole, message } of describe(error)) {
      const path = whole.length > PATH_LIMIT ? `${whole.slice(0, PATH_LIMIT)}…` : whole;
      const known = messages.get(path);
      if (!known) messages.set(path, [message]);
      else if (!known.includes(message)) known.push(message);
    }
  }
  return [...messages]
    .slice(0, ERROR_LIMIT)
    .map(([path, texts]) => ({ path, message: texts.join(unions.has(path) ? " or " : " and ") }));
}

/** Reports a missing or unknown property by its own path instead of the path of its object. */
function describe(error: CompiledError): FieldError[] {
  const params = error.params as {
    requiredProperties?: string[];
    additionalProperties?: string[];
    allowedValue?: unknown;
    allowedValues?: unknown[];
  };
  const at = (name: string) => pointer(error.instancePath, name);
  switch (error.keyword) {
    case "boolean":
      return [{ path: error.instancePath, message: "is not a known field" }];
    case "required":
      return (params.requiredProperties ?? []).map((name) => ({ path: at(name), message: "is required" }));
    case "additionalProperties":
      return (params.additionalProperties ?? []).map((name) => ({
        path: at(name),
        message: "is not a known field",
      }));
    case "const":
      return [{ path: error.instancePath, message: `must be ${JSON.stringify(params.allowedValue)}` }];
    case "enum":
      return [
        {
          path: error.instancePath,
          message: `must be one of ${(params.allowedValues ?? []).map((value) => JSON.stringify(value)).join(", ")}`,
        },
      ];
    default:
      return [{ path: error.instancePath, message: error.message }];
  }
}
