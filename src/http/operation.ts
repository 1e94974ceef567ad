import type { DocumentDecoration } from "elysia";
import type { TObject, TSchema } from "typebox";
import type { NamedScope } from "../access/scopes.ts";
import type { DialectAnswerBody, DialectBodies } from "./docs/dialect-bodies.ts";
import type { ErrorForm } from "./docs/error-forms.ts";

export interface DescribedOperation {
  /** The ledger's `noun.verb`. */
  readonly action: string;
  /**
   * The operation's name in generated clients. Needed if another operation has the same action. Default: the action,
   * with `_` for the dot.
   */
  readonly operationId?: string;
  /** One of several is enough. Null if any caller may call it and each resource is checked inside the handler. */
  readonly scope: NamedScope | "admin" | readonly NamedScope[] | null;
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
   * Responds with 200 and server-sent events, always or if the query asks for them. True: a task's events; otherwise
   * a description of the events.
   */
  readonly streams?: true | string;
  /** The media types of its responses, if not only JSON. The first is the default. */
  readonly formats?: readonly string[];
  readonly status: number;
  /** Its clients are existing programs: they may send their secret as `x-api-key`, and get errors in this form. */
  readonly client?: { readonly errors: ErrorForm };
  /** The bodies of an API that its clients know. Only described: requests are read by the dialect. */
  readonly dialect?: DialectBodies | DialectAnswerBody;
}

const TASK_EVENTS = "The task's events as they happen; the last one is `task.finished`.";

/** An operation of the OpenAPI 3.1 document. TypeBox schemas are JSON Schema and are used unchanged. */
export function operationDetail(operation: DescribedOperation): DocumentDecoration {
  const { query, client, dialect } = operation;
  const body = operation.body ?? (dialect && "request" in dialect ? dialect.request : undefined);
  const errors = client?.errors ?? "Problem";
  return {
    summary: operation.summary,
    description: `${needs(operation.scope)} In the ledger: \`${operation.action}\`.`,
    operationId: operation.operationId ?? operation.action.replace(".", "_"),
    tags: [operation.tag],
    security: client ? [{ token: [] }, { api_key: [] }] : [{ token: [] }],
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
      ...(dialect ? { 200: answerOf(dialect, operation.streams) } : {}),
      default: { $ref: `#/components/responses/${errors}` },
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

const ANSWER_HEADERS = {
  "Gatehouse-Model": "The model that answers.",
  "Gatehouse-Ledger": "The entry of the call's intent.",
  "Gatehouse-Request-Id": "Identifies the call in the ledger and in the server's log.",
};

/** A whole answer in a dialect, and its stream if it has one. */
function answerOf(dialect: DialectBodies | DialectAnswerBody, streams: DescribedOperation["streams"]) {
  const text = { type: "string" as const };
  const headers = Object.entries(ANSWER_HEADERS).map(([name, description]) => [
    name,
    { description, schema: text },
  ]);
  return {
    description: "The answer, in the format that the dialect's clients expect.",
    ...("request" in dialect ? { headers: Object.fromEntries(headers) } : {}),
    content: {
      "application/json": { schema: dialect.answer },
      ...(streams ? eventsOf(streams).content : {}),
    },
  };
}

function contentOf(formats: readonly string[]) {
  const schema = (type: string) => ({
    type: type === "application/json" ? ("object" as const) : ("string" as const),
  });
  return { content: Object.fromEntries(formats.map((type) => [type, { schema: schema(type) }])) };
}
