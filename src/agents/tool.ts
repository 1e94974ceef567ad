import type { Static, TSchema } from "typebox";
import type { FieldError } from "../base/errors.ts";
import { validator } from "../base/schema.ts";
import { ToolError } from "./errors.ts";
import type { JsonObject } from "./message.ts";

/** A JSON Schema of type object, as a plain value. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ToolContext {
  /** Aborts when the run is cancelled. The run does not wait for a tool that ignores it. */
  readonly signal: AbortSignal;
  readonly callId: string;
}

/** What the host knows of a tool beyond its schema. The framework passes the flags on and acts on neither. */
export interface ToolFlags {
  /** It may destroy or change something outside. */
  readonly destructive?: boolean;
  /** Calling it twice does no more than calling it once. */
  readonly idempotent?: boolean;
}

/** A tool with its argument type erased, as the loop sees it. Made by `defineTool`. */
export interface Tool extends ToolFlags {
  /** `[a-zA-Z0-9_.-]`, 128 characters at most. */
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  /** What is wrong with the arguments; empty when nothing is. Called before every `execute`. */
  validate(input: JsonObject): readonly FieldError[];
  /**
   * Text, or anything that `JSON.stringify` takes; undefined stands for null.
   * @throws ToolError with a message for the model. The model learns nothing of any other error.
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

/** A tool whose input is a plain JSON Schema, as MCP servers and OpenAPI documents give it. */
export interface SchemaToolDefinition extends ToolFlags {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonSchema;
  /** Default: the schema itself, compiled at the first call. */
  validate?(input: JsonObject): readonly FieldError[];
  execute(input: JsonObject, context: ToolContext): unknown;
}

const NAME = /^[a-zA-Z0-9_.-]{1,128}$/;

/** @throws TypeError when the name is not one that a tool can have. */
export function checkToolName(name: string): void {
  if (!NAME.test(name)) {
    throw new TypeError(`tool name ${JSON.stringify(name)}: letters, digits, "_", "." and "-", 128 at most`);
  }
}

/** Makes a tool. @throws TypeError for a bad name. */
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
      // The loop has validated already. Asking again is what gives the arguments their type without a cast.
      if (!input.is(value)) throw new ToolError("The arguments are not valid.");
      return definition.execute(value, context);
    },
  };
}

/** A typebox schema is a JSON Schema; its hidden marks are no part of it. */
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
      // A host lists hundreds of upstream tools and calls a few: compile those only.
      compiled ??= compile(definition.inputSchema);
      return compiled(value);
    },
    execute: (value, context) => definition.execute(value, context),
  };
}

function compile(schema: JsonSchema): Tool["validate"] {
  try {
    const input = validator(schema);
    // Compiles it here, where a failure is expected.
    input.is(undefined);
    return (value) => input.errors(value);
  } catch {
    // A schema from outside that cannot be compiled (an unknown reference) is its own server's to check.
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
