import { toOpenAPISchema } from "@elysia/openapi";
import type { AnyElysia } from "elysia";
import { VERSION } from "../../base/version.ts";
import { ERROR_RESPONSES } from "./error-forms.ts";

/** The OpenAPI 3.1 document of all routes that are not hidden, as described by `operationDetail`. */
export function openapiDocument(app: AnyElysia): object {
  const { paths } = toOpenAPISchema(app);
  // The plugin replaces an operation's parameters with its path parameters, so the query parameters are restored
  // here.
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
  securitySchemes: {
    token: { type: "http", scheme: "bearer", description: "A secret `gth_…`." },
    api_key: {
      type: "apiKey",
      in: "header",
      name: "x-api-key",
      description: "The same secret, as some clients send it.",
    },
  },
  responses: ERROR_RESPONSES,
};
