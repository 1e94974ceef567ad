import type { Static, TSchema } from "typebox";
import { type JsonObject, type JsonSchema, ToolError } from "../../agents/index.ts";
import { type FieldError, Problem } from "../../base/errors.ts";
import { validator } from "../../base/schema.ts";
import type { Via } from "../../base/via.ts";
import type { SourceCall, ToolAnnotations, ToolAnswer, ToolDescription } from "../source.ts";

/** The caller for whom a tool acts. */
export interface ToolActor {
  readonly workspaceId: number;
  /** Null for a token without an agent, which sees the whole workspace. */
  readonly agentId: number | null;
  /** The caller's name in the ledger. */
  readonly actor: string;
  /** For calls in a task: the Gatehouse instances that its dispatch had passed. */
  readonly via?: Via;
}

/** A tool that every workspace has. It acts with the rights of its caller. */
export interface BuiltinTool {
  readonly connector: string;
  readonly offered: ToolDescription;
  /** The errors in the arguments; empty if they are valid. */
  validate(input: JsonObject): readonly FieldError[];
  /** @throws ToolError with a message for the caller */
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
  /** Returns plain JSON. Checks the signal before each change. @throws ToolError, Problem */
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
    validate: (value) => (input.is(value) ? [] : input.errors(value)),
    async call(actor, value, { signal }) {
      // The caller has already validated. This check gives the arguments their type without a cast.
      if (!input.is(value)) throw new ToolError("The arguments are not valid.");
      try {
        const answer = await definition.execute(actor, value, signal);
        return { content: [{ type: "text", text: JSON.stringify(answer) }], structuredContent: answer };
      } catch (error) {
        // The model may be told everything about a refusal that the caller may be told.
        if (error instanceof Problem && error.status < 500)
          throw new ToolError(error.message, { cause: error });
        throw error;
      }
    },
  };
}

/** A typebox schema is a JSON Schema; its hidden markers are not part of it. */
function plain(schema: TSchema): JsonSchema {
  return { ...schema };
}
