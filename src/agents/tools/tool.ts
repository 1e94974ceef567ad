import type { Static, TSchema } from "typebox";
import type { FieldError } from "../../base/errors.ts";
import { validator } from "../../base/schema.ts";
import { ToolError } from "../errors.ts";
import type { JsonObject } from "../message.ts";

/** A JSON Schema of type object, as a plain value. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ToolContext {
  /** Aborts when the run is cancelled. The run does not wait for a tool that ignores it. */
  readonly signal: AbortSignal;
  readonly callId: string;
}

/** The host's knowledge of a tool beyond its schema. The framework passes these flags on without acting on them. */
export interface ToolFlags {
  /** Whether it may destroy or change something outside. */
  readonly destructive?: boolean;
  /** Whether calling it twice has the same effect as calling it once. */
  readonly idempotent?: boolean;
}

/** A tool with its argument type erased, as the loop uses it. Created by `defineTool`. */
export interface Tool extends ToolFlags {
  /** `[a-zA-Z0-9_.-]`, at most 128 characters. */
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  /** Problems with the arguments; empty if they are valid. Called before every `execute`. */
  validate(input: JsonObject): readonly FieldError[];
  /**
   * Returns text, or any value that `JSON.stringify` accepts; undefined becomes null.
   * @throws ToolError with a message for the model. Other errors are not shown to the model.
   */
  execute(input: JsonObject, context: ToolContext): unknown;
}

/** A tool whose input is a typebox schema: `execute` gets arguments of its static type. */
export interface TypedToolDefinition<Schema extends TSchema> extends ToolFlags {
  readonly name: string;
  readonly description: string;
  readonly input: Schema;
  execute(input: Static<Schema>, context: ToolContext): unknown;
}

/** A tool whose input is a plain JSON Schema, as in MCP servers and OpenAPI documents. */
export interface SchemaToolDefinition extends ToolFlags {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  /** Default: the schema itself, compiled at the first call. */
  validate?(input: JsonObject): readonly FieldError[];
  execute(input: JsonObject, context: ToolContext): unknown;
}

const NAME = /^[a-zA-Z0-9_.-]{1,128}$/;

/** @throws TypeError if the name is not valid for a tool */
export function checkToolName(name: string): void {
  if (!NAME.test(name)) {
    throw new TypeError(
      `tool name ${JSON.stringify(name)}: must be letters, digits, "_", "." and "-", at most 128 characters`,
    );
  }
}

/**
 * Creates a tool.
 * @throws TypeError for an invalid name
 */
export function defineTool<const Schema extends TSchema>(definition: TypedToolDefinition<Schema>): Tool;
export function defineTool(definition: SchemaToolDefinition): Tool;
export function defineTool<const Schema extends TSchema>(
  definition: TypedToolDefinition<Schema> | SchemaToolDefinition,
): Tool {
  checkToolName(definition.name);
  return "input" in definition ? fromTypebox(definition) : fromJsonSchema(definition);
}

function fromTypebox<const Schema extends TSchema>(definition: TypedToolDefinition<Schema>): Tool {
  const input = validator(definition.input);
  return {
    ...common(definition),
    inputSchema: plain(definition.input),
    validate: (value) => input.errors(value),
    execute(value, context) {
      // Already validated by the loop. Checking again gives the arguments their type without a cast.
      if (!input.is(value)) throw new ToolError("The arguments are not valid.");
      return definition.execute(value, context);
    },
  };
}

/** A typebox schema is a JSON Schema with hidden properties, which are removed. */
function plain(schema: TSchema): JsonSchema {
  return { ...schema };
}

function fromJsonSchema(definition: SchemaToolDefinition): Tool {
  let compiled: Tool["validate"] | undefined;
  return {
    ...common(definition),
    inputSchema: definition.inputSchema,
    validate(value) {
      if (definition.validate) return definition.validate(value);
      // A host lists hundreds of upstream tools but calls few, so only those are compiled.
      compiled ??= compile(definition.inputSchema);
      return compiled(value);
    },
    execute: (value, context) => definition.execute(value, context),
  };
}

function compile(schema: JsonSchema): Tool["validate"] {
  try {
    const input = validator(schema);
    // Triggers the compilation here, where a failure is handled.
    input.is(undefined);
    return (value) => input.errors(value);
  } catch {
    // An external schema that cannot be compiled (an unknown reference) is left for its own server to check.
    return () => [];
  }
}

function common(definition: ToolFlags & { readonly name: string; readonly description: string }) {
  const { name, description, destructive, idempotent } = definition;
  return {
    name,
    description,
    ...(destructive === undefined ? {} : { destructive }),
    ...(idempotent === undefined ? {} : { idempotent }),
  };
}
