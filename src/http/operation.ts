import type { DocumentDecoration } from "elysia";
import type { TObject, TSchema } from "typebox";
import type { NamedScope } from "../access/scopes.ts";

export interface DescribedOperation {
  /** The ledger's `noun.verb`. */
  readonly action: string;
  /**
   * The operation's name in generated clients. Needed if another operation has the same action. Default: the action,
   * with `_` for the dot.
   */
  readonly operationId?: string;
  /** One of several is enough. Null if any caller may call it and each resource is checked inside the handler. */
  readonly scope: NamedScope | readonly NamedScope[] | null;
  /** One line. */
  readonly summary: string;
  readonly tag: string;
  readonly body?: TSchema;
  /** Treats a missing body as `{}`. */
  readonly bodyOptional?: boolean;
  readonly query?: TObject;
  /** The request headers it reads, each with a description. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Answers 200 with server-sent events, always or if the query asks for them. True: a task's events; otherwise a
   * description of the events.
   */
  readonly streams?: true | string;
  /** The media types of its responses, if not only JSON. The first is the default. */
  readonly formats?: readonly string[];
  readonly status: number;
}

const TASK_EVENTS = "The task's events as they happen; the last one is `task.finished`.";
const PROBLEM = { $ref: "#/components/responses/Problem" };

/** An operation of the OpenAPI 3.1 document. TypeBox schemas are JSON Schema and are used unchanged. */
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

function needs(scope: DescribedOperation["scope"]): string {
  if (scope === null) return "Needs a token, but no particular scope.";
  const enough = typeof scope === "string" ? [scope] : scope;
  return `Needs the scope ${enough.map((each) => `\`${each}\``).join(" or ")}.`;
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
