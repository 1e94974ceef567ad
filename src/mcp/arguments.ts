import type { TSchema } from "typebox";
import type { FieldError } from "../base/errors.ts";
import type { Call } from "../gate/call.ts";
import type { Result } from "./request.ts";

/** A typebox schema as a tool's `inputSchema`; its hidden marks are no part of it. */
export function plainSchema(schema: TSchema): Readonly<Record<string, unknown>> {
  return { ...schema };
}

/** Records a call whose arguments do not fit, and answers what is wrong with them, for a model to read. */
export async function denyArguments(call: Call, faults: readonly FieldError[]): Promise<Result> {
  await call.record("denied", "invalid_arguments");
  const list = faults.map(({ path, message }) => `${path || "arguments"}: ${message}`).join("; ");
  return { content: [{ type: "text", text: `The arguments are not valid. ${list}` }], isError: true };
}
