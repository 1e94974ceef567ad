/**
 * An MCP server over stdio that answers at once. Written by hand, because otherwise the SDK would be what is
 * measured. It ends when its input does.
 */
import { createInterface } from "node:readline";
import Type, { type Static } from "typebox";
import { validator } from "../../../src/base/schema.ts";
import { ANSWER, UPSTREAM_TOOLS } from "./upstream-tools.ts";

const message = validator(
  Type.Object({
    id: Type.Optional(Type.Union([Type.Integer(), Type.String()])),
    method: Type.Optional(Type.String()),
    params: Type.Optional(Type.Object({ protocolVersion: Type.Optional(Type.String()) })),
  }),
);

function answer({ method, params }: Static<typeof message.schema>): object {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "service-desk", version: "1.0.0" },
      };
    case "tools/list":
      return { tools: UPSTREAM_TOOLS };
    case "tools/call":
      return { content: [{ type: "text", text: ANSWER }] };
    default:
      return {};
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = message.parse(JSON.parse(line));
  if (asked.id === undefined) continue;
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: asked.id, result: answer(asked) })}\n`);
}
