import type { DocumentDecoration } from "elysia";
import type { TObject, TSchema } from "typebox";
import type { NamedScope } from "../access/scopes.ts";

export interface DescribedOperation {
  readonly action: string;
  readonly scope: NamedScope;
  readonly summary: string;
  readonly tag: string;
  readonly body?: TSchema;
  readonly bodyOptional?: boolean;
  readonly query?: TObject;
  readonly status: number;
}

const PROBLEM = { $ref: "#/components/responses/Problem" };

/** An operation of the OpenAPI 3.1 document: typebox schemas are JSON Schema, and go in as they are. */
export function operationDetail(operation: DescribedOperation): DocumentDecoration {
  const { query, body } = operation;
  return {
    summary: operation.summary,
    description: `Needs the scope \`${operation.scope}\`. In the ledger: \`${operation.action}\`.`,
    operationId: operation.action.replace(".", "_"),
    tags: [operation.tag],
    security: [{ token: [] }],
    ...(query
      ? {
          parameters: Object.entries(query.properties).map(([name, schema]) => ({
            in: "query",
            name,
            required: query.required?.includes(name) ?? false,
            schema,
          })),
        }
      : {}),
    ...(body
      ? {
          requestBody: {
            required: operation.bodyOptional !== true,
            content: { "application/json": { schema: body } },
          },
        }
      : {}),
    responses: { [operation.status]: { description: "Done." }, default: PROBLEM },
  };
}
