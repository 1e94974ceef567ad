import { toOpenAPISchema } from "@elysia/openapi";
import type { AnyElysia } from "elysia";
import { VERSION } from "../../base/version.ts";

/** The OpenAPI 3.1 document of all routes that are not hidden, as described by `operationDetail`. */
export function openapiDocument(app: AnyElysia): object {
  const { paths } = toOpenAPISchema(app);
  // The plugin replaces an operation's parameters by its path parameters, so the query parameters are restored here.
  for (const { path, method, hooks } of app.routes) {
    const described: object = paths[path.replaceAll(/:([^/]+)/g, "{$1}")] ?? {};
    const operation: DocumentedOperation | undefined = Reflect.get(described, method.toLowerCase());
    const own: readonly object[] = hooks?.detail?.parameters ?? [];
    const lost = own.filter((parameter) => operation?.parameters?.includes(parameter) === false);
    if (operation && lost.length > 0) operation.parameters = [...(operation.parameters ?? []), ...lost];
  }
  return {
    openapi: "3.1.2",
    info: {
      title: "Gatehouse",
      version: VERSION,
      description: "Agents, tasks, tokens and evidence. Every call is authenticated, limited and recorded.",
    },
    paths,
    components: COMPONENTS,
  };
}

interface DocumentedOperation {
  parameters?: readonly object[];
}

const COMPONENTS = {
  securitySchemes: { token: { type: "http", scheme: "bearer", description: "A secret `gth_…`." } },
  responses: {
    Problem: {
      description: "Refused or failed (RFC 9457).",
      content: {
        "application/problem+json": {
          schema: {
            type: "object",
            required: ["type", "title", "status", "detail", "code", "request_id"],
            properties: {
              type: { type: "string" },
              title: { type: "string" },
              status: { type: "integer" },
              detail: { type: "string" },
              code: { type: "string" },
              request_id: { type: "string" },
              errors: {
                type: "array",
                items: {
                  type: "object",
                  properties: { path: { type: "string" }, message: { type: "string" } },
                },
              },
            },
          },
        },
      },
    },
  },
};
