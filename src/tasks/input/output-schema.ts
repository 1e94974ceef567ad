import type { JsonSchema, JsonValue, OutputOption } from "../../agents/index.ts";
import { JsonTooLarge, parseJson } from "../../base/json-limits.ts";
import { exactCheck, type ValueCheck } from "../../connectors/arguments/check.ts";
import type { TaskInput } from "./task-input.ts";

/** The maximum number of characters of a schema as JSON: it is sent with every request of the task. */
const MOST_CHARACTERS = 100_000;

/** Checks outputs against a task's schema. Null if they cannot be checked exactly within a short time. */
export function outputCheck(schema: JsonSchema): ValueCheck | null {
  return JSON.stringify(schema).length > MOST_CHARACTERS ? null : exactCheck(schema);
}

/** The framework's option for a task with a schema; undefined for one without. */
export function outputOption({ outputSchema: schema }: TaskInput): OutputOption | undefined {
  if (schema === null) return undefined;
  const validate = outputCheck(schema);
  if (!validate) throw new Error("a task was accepted with a schema that cannot be checked");
  return { schema, validate };
}

/** Whether an answer can be a task's output: any text without a schema, and valid JSON with one. */
export function isValidOutput(option: OutputOption | undefined, text: string): boolean {
  if (!option) return true;
  try {
    return option.validate?.(parseJson(text) as JsonValue).length === 0;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof JsonTooLarge) return false;
    throw error;
  }
}

/** The value of an output; null if the task has no schema, or its texts were erased. */
export function outputValue(input: TaskInput | null, output: string | null): JsonValue {
  if (output === null || input === null || input.outputSchema === null) return null;
  try {
    return parseJson(output) as JsonValue;
  } catch {
    // The stored text was changed. `output` shows the changed text.
    return null;
  }
}
