import type { TSchema } from "typebox";
import { describeArgumentErrors, type FieldError } from "../base/errors.ts";
import type { Call } from "../gate/call.ts";
import type { RpcResult } from "./request.ts";

/** A TypeBox schema as a tool's `inputSchema`, without TypeBox's own hidden properties. */
export function plainSchema(schema: TSchema): Readonly<Record<string, unknown>> {
  return { ...schema };
}

/** Records a call with invalid arguments. The returned result explains the errors to a model. */
export async function denyArguments(call: Call, faults: readonly FieldError[]): Promise<RpcResult> {
  await call.record("denied", "invalid_arguments");
  return { content: [{ type: "text", text: describeArgumentErrors(faults) }], isError: true };
}
