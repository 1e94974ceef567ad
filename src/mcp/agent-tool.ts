import Type from "typebox";
import type { Agent } from "../access/agents.ts";
import { validator } from "../base/schema.ts";
import { plainSchema } from "./arguments.ts";
import type { ToolView } from "./tool-view.ts";

/** Takes the place of the connector's name. No connector can have this name. */
export const AGENTS = "agents";

export function agentToolName(agent: string): string {
  return `${AGENTS}.${agent}`;
}

/** The agent that a dotted name stands for, or undefined for a connector's tool. */
export function agentOf(name: string): string | undefined {
  return name.startsWith(`${AGENTS}.`) ? name.slice(AGENTS.length + 1) : undefined;
}

export const AgentArguments = validator(
  Type.Object(
    {
      prompt: Type.String({ minLength: 1, maxLength: 1_000_000, description: "The task for the agent." }),
      tier: Type.Optional(
        Type.Integer({ minimum: 1, description: "The tier of models it may use. Default: the lowest tier." }),
      ),
    },
    { additionalProperties: false },
  ),
);
const INPUT_SCHEMA = JSON.stringify(plainSchema(AgentArguments.schema));

const OUTPUT_SCHEMA = JSON.stringify({
  type: "object",
  properties: {
    task: { type: "string" },
    status: { type: "string", enum: ["succeeded", "failed", "cancelled"] },
    output: { type: ["string", "null"] },
    credits_consumed: { type: "number" },
  },
  required: ["task", "status", "output", "credits_consumed"],
});

/** The fields of an agent that its tool has. */
export type OfferedAgent = Pick<Agent, "id" | "name" | "description">;

/** An agent as a tool, which gives it a task and waits for the result. */
export function agentTool(shown: string, agent: OfferedAgent): ToolView {
  const about = agent.description === null ? "" : ` ${agent.description}`;
  return {
    name: shown,
    title: agentToolName(agent.name),
    description: `Gives the agent ${agent.name} a task and returns its output.${about}`,
    inputSchemaJson: INPUT_SCHEMA,
    outputSchemaJson: OUTPUT_SCHEMA,
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  };
}
