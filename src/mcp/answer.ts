import { redact } from "../base/log.ts";
import type { Params, RequestContext, RpcResult } from "./request.ts";
import { listResources, listResourceTemplates, readResource } from "./resources.ts";
import { RPC, RpcError } from "./rpc-error.ts";
import { callTool, listTools, type McpToolParts } from "./tools.ts";

/**
 * Computes the result of a request.
 * @throws RpcError, and nothing else
 */
export async function answer(
  parts: McpToolParts,
  context: RequestContext,
  method: string,
  params: Params,
): Promise<RpcResult> {
  try {
    return await resultOf(parts, context, method, params);
  } catch (error) {
    if (error instanceof RpcError) throw error;
    const { requestId } = context.visit.origin;
    parts.log.error("an MCP request failed", { request_id: requestId, error });
    throw new RpcError(RPC.internal, "Something went wrong. Search the server's log for the request id.", {
      code: "internal",
      request_id: requestId,
    });
  }
}

function resultOf(
  parts: McpToolParts,
  context: RequestContext,
  method: string,
  params: Params,
): RpcResult | Promise<RpcResult> {
  const { stream } = context;
  const fixture = stream && parts.fixtures?.handle(method, params, { ...context, ...stream });
  if (fixture) return fixture;
  switch (method) {
    case "tools/list":
      return listTools(parts, context, params);
    case "tools/call":
      return callTool(parts, context, params);
    case "resources/list":
      return listResources(parts, context, params);
    case "resources/templates/list":
      return listResourceTemplates(parts);
    case "resources/read":
      return readResource(parts, context, params);
    default:
      throw new RpcError(RPC.methodNotFound, `Method not found: ${redact(method.slice(0, 100))}`);
  }
}
