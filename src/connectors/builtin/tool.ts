import type { Static, TSchema } from "typebox";
import { type JsonObject, type JsonSchema, ToolError } from "../../agents/index.ts";
import { type FieldError, Problem } from "../../base/errors.ts";
import { validator } from "../../base/schema.ts";
import type { Via } from "../../base/via.ts";
import type { OfferedTool, SourceCall, ToolAnnotations, ToolAnswer } from "../source.ts";

/** On whose behalf a tool acts. */
export interface ToolActor {
  readonly workspaceId: number;
  /** Null: a token without an agent, which sees the whole workspace. */
  readonly agentId: number | null;
  /** As the ledger names who asked for it. */
  readonly actor: string;
  /** Of a task's calls: the Gatehouses that its dispatch had passed. */
  readonly via?: Via;
}

/** A tool that is always there, and acts with the rights of whoever calls it. */
export interface BuiltinTool {
  readonly connector: string;
  readonly offered: OfferedTool;
  /** What is wrong with the arguments; empty when nothing is. */
  validate(input: JsonObject): readonly FieldError[];
  /** @throws ToolError with a message for whoever called */
  call(actor: ToolActor, input: JsonObject, context: SourceCall): Promise<ToolAnswer>;
}

type PlainObject = Readonly<Record<string, unknown>>;

export interface BuiltinToolDefinition<Schema extends TSchema> {
  /** `<connector>.<tool>` */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Schema;
  readonly annotations: ToolAnnotations;
  /** Answers plain JSON. Looks at the signal before it changes anything. @throws ToolError, Problem */
  execute(actor: ToolActor, input: Static<Schema>, signal: AbortSignal): PlainObject | Promise<PlainObject>;
}

export function builtinTool<const Schema extends TSchema>(
  definition: BuiltinToolDefinition<Schema>,
): BuiltinTool {
  const input = validator(definition.input);
  const [connector = "", name = ""] = definition.name.split(".");
  const { title, description, annotations } = definition;
  return {
    connector,
    offered: {
      name,
      title,
      description,
      inputSchema: plain(definition.input),
      annotations,
      destructive: annotations.destructiveHint === true,
    },
    validate: (value) => input.errors(value),
    async call(actor, value, { signal }) {
      // Whoever calls has validated already. Asking again is what gives the arguments their type without a cast.
      if (!input.is(value)) throw new ToolError("The arguments are not valid.");
      try {
        const answer = await definition.execute(actor, value, signal);
        return { content: [{ type: "text", text: JSON.stringify(answer) }], structuredContent: answer };
      } catch (error) {
        // What a caller may know of a refusal, the model may know too.
        if (error instanceof Problem && error.status < 500)
          throw new ToolError(error.message, { cause: error });
        throw error;
      }
    },
  };
}

/** A typebox schema is a JSON Schema; its hidden marks are no part of it. */
function plain(schema: TSchema): JsonSchema {
  return { ...schema };
}
