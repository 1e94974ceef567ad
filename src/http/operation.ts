import type { DocumentDecoration } from "elysia";
import type { TObject, TSchema } from "typebox";
import type { NamedScope } from "../access/scopes.ts";

export interface DescribedOperation {
  readonly action: string;
  /** Its name in clients that are made of the document. Default: its action, with `_` for the dot. */
  readonly operationId?: string;
  readonly scope: NamedScope | null;
  readonly summary: string;
  readonly tag: string;
  readonly body?: TSchema;
  readonly bodyOptional?: boolean;
  readonly query?: TObject;
  /** Request headers that it reads, each with what it is for. */
  readonly headers?: Readonly<Record<string, string>>;
  /** It answers 200 with server-sent events, always or when the query asks for them: a task's, or those described here. */
  readonly streams?: true | string;
  /** Media types of its answer, where JSON is not the only one; the first is what it answers when none is asked for. */
  readonly formats?: readonly string[];
  readonly status: number;
}

const TASK_EVENTS = "The task's events as they come, the last of them `task.finished`.";
const PROBLEM = { $ref: "#/components/responses/Problem" };

/** An operation of the OpenAPI 3.1 document: typebox schemas are JSON Schema, and go in as they are. */
export function operationDetail(operation: DescribedOperation): DocumentDecoration {
  const { query, body } = operation;
  return {
    summary: operation.summary,
    description: `${needs(operation.scope)} In the ledger: \`${operation.action}\`.`,
    operationId: operation.operationId ?? operation.action.replace(".", "_"),
    tags: [operation.tag],
    security: [{ token: [] }],
    parameters: [
      ...Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
        in: "query",
        name,
        required: query?.required?.includes(name) ?? false,
        schema,
      })),
      ...Object.entries(operation.headers ?? {}).map(([name, description]) => ({
        in: "header",
        name,
        description,
        required: false,
        schema: { type: "string" as const },
      })),
    ],
    ...(body
      ? {
          requestBody: {
            required: operation.bodyOptional !== true,
            content: { "application/json": { schema: body } },
          },
        }
      : {}),
    responses: {
      [operation.status]: { description: "Done.", ...(operation.formats && contentOf(operation.formats)) },
      ...(operation.streams ? { 200: eventsOf(operation.streams) } : {}),
      default: PROBLEM,
    },
  };
}

function needs(scope: NamedScope | null): string {
  return scope === null ? "Needs a token, and no scope of its own." : `Needs the scope \`${scope}\`.`;
}

function eventsOf(described: true | string) {
  return {
    description: described === true ? TASK_EVENTS : described,
    content: { "text/event-stream": { schema: { type: "string" as const } } },
  };
}

function contentOf(formats: readonly string[]) {
  const schema = (type: string) => ({
    type: type === "application/json" ? ("object" as const) : ("string" as const),
  });
  return { content: Object.fromEntries(formats.map((type) => [type, { schema: schema(type) }])) };
}
