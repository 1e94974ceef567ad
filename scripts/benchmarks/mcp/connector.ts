import Type from "typebox";
import { validator } from "../../../src/base/schema.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { UPSTREAM_PROGRAM, UPSTREAM_TOOLS } from "../servers/upstream-tools.ts";

const CONNECTOR = "desk";

const created = validator(Type.Object({ status: Type.String(), tools: Type.Array(Type.Unknown()) }));

/**
 * Connects the upstream over stdio.
 * @throws Error if any of its tools is missing
 */
export async function connectUpstream(gatehouse: Gatehouse): Promise<void> {
  const { status, tools } = created.parse(
    await gatehouse.call(201, "POST", "/v1/connectors", {
      name: CONNECTOR,
      kind: "mcp",
      transport: { type: "stdio", ...UPSTREAM_PROGRAM },
    }),
  );
  if (status === "ready" && tools.length === UPSTREAM_TOOLS.length) return;
  throw new Error(`the upstream is ${status}, with ${tools.length} tools`);
}

/** The tool's name over MCP. */
export function outwardName(tool: string): string {
  return `${CONNECTOR}__${tool}`;
}
