import { Elysia } from "elysia";
import { Problem } from "../base/errors.ts";
import type { Ids } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { readVia } from "../base/via.ts";
import type { LoopGuard } from "../gate/loops.ts";
import type { RotationParts } from "../ledger/keys/rotation.ts";
import type { Db } from "../store/db.ts";
import { problemResponse } from "./answer/answer.ts";
import { madeOnce, PublicFiles, publicFile } from "./answer/public-files.ts";
import { openapiDocument } from "./docs/document.ts";
import type { EndpointContext } from "./endpoint.ts";
import { allowedMethods } from "./methods.ts";
import { catchPaths, pathOf } from "./raw-path.ts";
import { type AgentRouteParts, agentRoutes } from "./routes/agents.ts";
import { type ApprovalRouteParts, approvalRoutes } from "./routes/approvals.ts";
import { backupRoutes } from "./routes/backups.ts";
import { type ConnectorRouteParts, connectorRoutes } from "./routes/connectors.ts";
import { consoleRoutes } from "./routes/console.ts";
import { type ConsoleLinkRouteParts, consoleLinkRoutes } from "./routes/console-links.ts";
import { type DialectRouteParts, dialectRoutes } from "./routes/dialects.ts";
import { type FeedRouteParts, feedRoutes } from "./routes/events.ts";
import { type LedgerRouteParts, ledgerRoutes } from "./routes/ledger.ts";
import { type LedgerProofParts, ledgerKeyRoutes, ledgerProofRoutes } from "./routes/ledger-proofs.ts";
import { type McpRouteParts, mcpRoutes } from "./routes/mcp.ts";
import { type ModelRouteParts, modelRoutes } from "./routes/models.ts";
import { type NodeRouteParts, nodeRoutes } from "./routes/nodes.ts";
import { type PayloadRouteParts, payloadRoutes } from "./routes/payload.ts";
import { type ResponseRouteParts, responseRoutes } from "./routes/responses.ts";
import { scheduleRoutes } from "./routes/schedules.ts";
import { type SessionRouteParts, sessionRoutes } from "./routes/sessions.ts";
import { type StatusRouteParts, statusRoutes } from "./routes/status.ts";
import { type SystemRouteParts, systemRoutes } from "./routes/system.ts";
import { type TaskRouteParts, taskRoutes } from "./routes/tasks.ts";
import { type TokenRouteParts, tokenRoutes } from "./routes/tokens.ts";
import { type ToolRouteParts, toolRoutes } from "./routes/tools.ts";
import { type UsageRouteParts, usageRoutes } from "./routes/usage.ts";
import { type VaultRouteParts, vaultRoutes } from "./routes/vault.ts";
import { type WebhookRouteParts, webhookRoutes } from "./routes/webhooks.ts";
import { operatorRoutes, type WorkspaceRouteParts, workspaceRoutes } from "./routes/workspace.ts";
import { nodeStopRoutes, type StopRouteParts, workspaceStopRoutes } from "./routes/workspace-stop.ts";

export interface AppParts {
  readonly endpoints: Omit<EndpointContext, "server">;
  readonly log: Log;
  readonly loops: LoopGuard;
  readonly db: Db;
  readonly agents: AgentRouteParts;
  readonly tasks: TaskRouteParts;
  readonly events: FeedRouteParts;
  readonly schedules: Parameters<typeof scheduleRoutes>[1];
  readonly webhooks: Omit<WebhookRouteParts, "db">;
  readonly tokens: TokenRouteParts;
  readonly sessions: SessionRouteParts;
  readonly consoleLinks: ConsoleLinkRouteParts;
  readonly approvals: Pick<ApprovalRouteParts, "approvalService">;
  readonly models: ModelRouteParts;
  readonly dialects: DialectRouteParts;
  readonly responses: ResponseRouteParts;
  readonly vault: VaultRouteParts;
  readonly connectors: ConnectorRouteParts;
  readonly tools: ToolRouteParts;
  readonly proofs: Omit<LedgerProofParts, "db" | "workspaces">;
  readonly rotation: RotationParts;
  readonly usage: UsageRouteParts;
  readonly exports: Omit<LedgerRouteParts, "db" | "log">;
  readonly payloads: PayloadRouteParts;
  readonly mcp: McpRouteParts;
  readonly workspace: WorkspaceRouteParts & StopRouteParts;
  readonly nodes: NodeRouteParts;
  readonly status: StatusRouteParts;
  readonly system: SystemRouteParts;
}

/** The whole REST API, one line per resource, and the MCP endpoint. */
export function createApp(parts: AppParts) {
  const endpoints: EndpointContext = { ...parts.endpoints, server: () => app.server };
  const served = new PublicFiles({ clock: parts.system.clock, ids: endpoints.ids });
  const app = new Elysia({ name: "gatehouse" })
    // For every path, before anything else. A refused loop is neither counted nor recorded. With `onRequest`, Elysia
    // would take every URL apart (0.2 µs).
    .wrap((answer, request) => {
      const problem = parts.loops.refusal(readVia(request.headers));
      if (problem === null) return answer;
      const requestId = endpoints.ids("req");
      return () => problemResponse(problem, { "gatehouse-request-id": requestId }, requestId);
    })
    .use(systemRoutes(parts.system, served))
    .use(consoleRoutes(endpoints, served))
    .use(agentRoutes(endpoints, parts.agents))
    .use(taskRoutes(endpoints, parts.tasks))
    .use(feedRoutes(endpoints, parts.events))
    .use(approvalRoutes(endpoints, { ...parts.approvals, ...parts.tasks }))
    .use(scheduleRoutes(endpoints, parts.schedules))
    .use(webhookRoutes(endpoints, { ...parts.webhooks, db: parts.db }))
    .use(tokenRoutes(endpoints, parts.tokens))
    .use(sessionRoutes(endpoints, parts.sessions))
    .use(consoleLinkRoutes(endpoints, parts.consoleLinks))
    .use(modelRoutes(endpoints, parts.models))
    .use(dialectRoutes(endpoints, parts.dialects))
    .use(responseRoutes(endpoints, parts.responses))
    .use(vaultRoutes(endpoints, parts.vault))
    .use(connectorRoutes(endpoints, parts.connectors))
    .use(toolRoutes(endpoints, parts.tools))
    .use(workspaceRoutes(endpoints, parts.workspace))
    .use(workspaceStopRoutes(endpoints, parts.workspace))
    .use(operatorRoutes(endpoints, parts.workspace))
    .use(nodeStopRoutes(endpoints, parts.workspace))
    .use(statusRoutes(endpoints, parts.status))
    .use(backupRoutes(endpoints, parts.workspace))
    .use(nodeRoutes(endpoints, parts.nodes))
    .use(
      ledgerProofRoutes(endpoints, { ...parts.proofs, db: parts.db, workspaces: parts.workspace.workspaces }),
    )
    .use(ledgerKeyRoutes(endpoints, parts.rotation))
    .use(payloadRoutes(endpoints, parts.payloads))
    .use(usageRoutes(endpoints, parts.usage))
    .use(ledgerRoutes(endpoints, { ...parts.exports, db: parts.db, log: parts.log }))
    .use(mcpRoutes(endpoints, parts.mcp));
  const routes = () => app.routes;
  // Made from the routes above.
  const document = madeOnce(() =>
    publicFile(new TextEncoder().encode(JSON.stringify(openapiDocument(app))), {
      "content-type": "application/json",
      "cache-control": "no-cache",
    }),
  );
  app.get(
    "/openapi.json",
    async ({ request, server }) => served.answer({ request, server }, await document()),
    { detail: { hide: true } },
  );
  const whole = app.onError(({ error, code, request }) =>
    failure(error, code, request, routes, endpoints.ids, parts.log),
  );
  whole.config.serve = {
    routes: catchPaths(
      (request) => whole.fetch(request),
      () => notFound(endpoints.ids("req")),
    ),
  };
  return whole;
}

export type App = ReturnType<typeof createApp>;

/** Answers requests that no endpoint handled: no such route, wrong method, or an error outside the gate. */
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
    const allow = allowedMethods(routes(), pathOf(request.url));
    if (allow.length === 0) return notFound(requestId);
    const problem = new Problem("method_not_allowed", `This path does not support ${request.method}.`, {
      headers: { Allow: allow.join(", ") },
    });
    return problemResponse(problem, headers, requestId);
  }
  if (code === "PARSE" || code === "VALIDATION" || code === "INVALID_COOKIE_SIGNATURE") {
    return problemResponse(
      new Problem("invalid_json", "The request could not be parsed."),
      headers,
      requestId,
    );
  }
  log.error("a request failed outside the gate", { request_id: requestId, error });
  return problemResponse(
    new Problem("internal", "Something went wrong. Search the server's log for the request id."),
    headers,
    requestId,
  );
}

function notFound(requestId: string): Response {
  const headers = { "gatehouse-request-id": requestId };
  return problemResponse(new Problem("not_found", "There is nothing here."), headers, requestId);
}
