import { openapi } from "@elysia/openapi";
import { Elysia } from "elysia";
import { Problem } from "../base/errors.ts";
import type { Ids } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { VERSION } from "../base/version.ts";
import type { Db } from "../store/db.ts";
import { problemResponse } from "./answer.ts";
import type { Door } from "./endpoint.ts";
import { allowedMethods } from "./methods.ts";
import { type AgentRouteParts, agentRoutes } from "./routes/agents.ts";
import { ledgerRoutes } from "./routes/ledger.ts";
import { type ModelRouteParts, modelRoutes } from "./routes/models.ts";
import { type SystemRouteParts, systemRoutes } from "./routes/system.ts";
import { type TaskRouteParts, taskRoutes } from "./routes/tasks.ts";
import { type TokenRouteParts, tokenRoutes } from "./routes/tokens.ts";
import { operatorRoutes, type WorkspaceRouteParts, workspaceRoutes } from "./routes/workspace.ts";

export interface AppParts {
  readonly door: Door;
  readonly log: Log;
  readonly db: Db;
  readonly agents: AgentRouteParts;
  readonly tasks: TaskRouteParts;
  readonly tokens: TokenRouteParts;
  readonly models: ModelRouteParts;
  readonly workspace: WorkspaceRouteParts;
  readonly system: SystemRouteParts;
}

/** The whole of REST: one line a resource. */
export function createApp(parts: AppParts) {
  const { door } = parts;
  const app = new Elysia({ name: "gatehouse", precompile: true })
    .use(document())
    .use(systemRoutes(parts.system))
    .use(agentRoutes(door, parts.agents))
    .use(taskRoutes(door, parts.tasks))
    .use(tokenRoutes(door, parts.tokens))
    .use(modelRoutes(door, parts.models))
    .use(workspaceRoutes(door, parts.workspace))
    .use(operatorRoutes(door, parts.workspace))
    .use(ledgerRoutes(door, parts));
  const routes = () => app.routes;
  return app.onError(({ error, code, request }) =>
    failure(error, code, request, routes, door.ids, parts.log),
  );
}

export type App = ReturnType<typeof createApp>;

/** `/openapi.json`. The page that shows it is our own, since the plugin's loads from elsewhere. */
function document() {
  return openapi({
    provider: null,
    path: "/openapi",
    specPath: "/openapi.json",
    documentation: {
      info: {
        title: "Gatehouse",
        version: VERSION,
        description: "Agents, tasks, tokens and evidence. Every call is authenticated, limited and recorded.",
      },
      components: {
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
      },
    },
  });
}

/** What no endpoint answered: no route, another method, or a fault outside the gate. */
function failure(
  error: unknown,
  code: string | number,
  request: Request,
  routes: () => readonly { readonly method: string; readonly path: string }[],
  ids: Ids,
  log: Log,
): Response {
  const requestId = ids("req");
  const headers = { "gatehouse-request-id": requestId };
  if (code === "NOT_FOUND") {
    const { pathname } = new URL(request.url);
    const allow = allowedMethods(routes(), pathname);
    if (allow.length === 0)
      return problemResponse(new Problem("not_found", "There is nothing here."), headers, requestId);
    const problem = new Problem("method_not_allowed", `${request.method} is not for this path.`, {
      headers: { Allow: allow.join(", ") },
    });
    return problemResponse(problem, headers, requestId);
  }
  if (code === "PARSE" || code === "VALIDATION" || code === "INVALID_COOKIE_SIGNATURE") {
    return problemResponse(new Problem("invalid_json", "The request cannot be read."), headers, requestId);
  }
  log.error("a request failed outside the gate", { request_id: requestId, error });
  return problemResponse(
    new Problem("internal", "Something went wrong here. The request id finds it in the server's log."),
    headers,
    requestId,
  );
}
