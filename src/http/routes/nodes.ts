import { Elysia } from "elysia";
import { isOperator } from "../../access/operator.ts";
import { timestamp } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import type { NodeInfo } from "../../nodes/nodes.ts";
import { DEFAULT_LIMIT, decodeCursor, LIST_QUERY, page } from "../answer/page.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

export interface NodeRouteParts {
  /** The servers that use the store, the oldest first. */
  listNodes(): Promise<readonly NodeInfo[]>;
}

/** The servers that share the store. How many tasks they run is counted over all workspaces. */
export function nodeRoutes(endpoints: EndpointContext, { listNodes }: NodeRouteParts) {
  const list = endpoint(
    endpoints,
    {
      action: "node.list",
      scope: "admin",
      summary: "List the servers that share the store, the oldest first",
      tag: "System",
      query: LIST_QUERY,
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      if (!isOperator(call.caller)) {
        throw new Problem(
          "operator_only",
          "The servers' tasks are those of all workspaces, so only the operator may list them.",
        );
      }
      const after = decodeCursor(cursor, (key) => /^\d{16} \w+$/.test(key)) ?? "";
      const found = (await listNodes()).filter((node) => keyOf(node) > after);
      return { status: 200, body: page(found.slice(0, limit + 1), limit, keyOf, viewNode) };
    },
  );
  return new Elysia({ prefix: "/v1/nodes" }).get("", list.handle, list.hook);
}

/** Texts that are in the order of the list. */
function keyOf({ since, id }: NodeInfo): string {
  return `${String(since).padStart(16, "0")} ${id}`;
}

function viewNode({ id, version, since, lastSeen, tasks }: NodeInfo) {
  return { id, version, since: timestamp(since), last_seen: timestamp(lastSeen), tasks };
}
