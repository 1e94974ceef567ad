import type { JsonObject, JsonSchema } from "../../agents/index.ts";
import { ownJson } from "../../base/own-text.ts";
import type { ToolDescription } from "../source.ts";

/**
 * A tool as kept in memory and in the store. Its schemas stay JSON text: parsed, 60 KB of small arrays take 30 times
 * as much memory, and few callers need them.
 */
export interface KeptTool extends Omit<ToolDescription, "inputSchema" | "outputSchema" | "binding"> {
  /** JSON text of a JSON Schema of type object. */
  readonly inputSchemaJson: string;
  readonly outputSchemaJson?: string;
  /** JSON text of the tool's `binding`. */
  readonly bindingJson?: string;
}

/** Memory for a JavaScript object, its strings and its map entries, besides the characters. */
const OBJECT_BYTES = 1_024;
const WIDE_CHARACTER = /[^\0-\xff]/;

/** Converts an offered tool into the form that is kept. It shares no memory with its source. */
export function keepTool({ inputSchema, outputSchema, binding, ...told }: ToolDescription): KeptTool {
  return {
    ...ownJson(told),
    inputSchemaJson: JSON.stringify(inputSchema),
    ...(outputSchema ? { outputSchemaJson: JSON.stringify(outputSchema) } : {}),
    ...(binding ? { bindingJson: JSON.stringify(binding) } : {}),
  };
}

/** The tool with its schemas parsed. Callers should not keep it. */
export function expandTool(tool: KeptTool): ToolDescription {
  const { inputSchemaJson: _, outputSchemaJson, bindingJson, ...told } = tool;
  return {
    ...told,
    inputSchema: inputSchemaOf(tool),
    ...(outputSchemaJson === undefined ? {} : { outputSchema: objectOf(outputSchemaJson) }),
    ...(bindingJson === undefined ? {} : { binding: objectOf(bindingJson) }),
  };
}

const parsed = new WeakMap<KeptTool, WeakRef<JsonSchema>>();

/** The parsed input schema. Concurrent callers share one; it is freed when the last of them releases it. */
export function inputSchemaOf(tool: KeptTool): JsonSchema {
  const known = parsed.get(tool)?.deref();
  if (known) return known;
  const schema = objectOf(tool.inputSchemaJson);
  parsed.set(tool, new WeakRef(schema));
  return schema;
}

/** The data that the tool's source needs to call it. */
export function bindingOf({ bindingJson }: Pick<KeptTool, "bindingJson">): JsonObject | undefined {
  return bindingJson === undefined ? undefined : objectOf(bindingJson);
}

/** Memory that these tools take, in bytes. */
export function bytesOfTools(tools: readonly KeptTool[]): number {
  let bytes = 0;
  for (const tool of tools) bytes += bytesOfTool(tool);
  return bytes;
}

export function bytesOfTool(tool: KeptTool): number {
  const { name, title = "", description, inputSchemaJson, outputSchemaJson = "", bindingJson = "" } = tool;
  let bytes = OBJECT_BYTES;
  for (const text of [name, title, description, inputSchemaJson, outputSchemaJson, bindingJson]) {
    // The engine stores a string that contains a wide character with two bytes per character.
    bytes += WIDE_CHARACTER.test(text) ? 2 * text.length : text.length;
  }
  return bytes;
}

/** Whether two lists contain the same tools in the same order. */
export function areSameTools(some: readonly KeptTool[], others: readonly KeptTool[]): boolean {
  if (some === others) return true;
  return (
    some.length === others.length &&
    some.every((tool, index) => {
      const other = others[index];
      return other !== undefined && (tool === other || JSON.stringify(tool) === JSON.stringify(other));
    })
  );
}

/** Parses only text that this program made from an object. */
function objectOf(json: string): JsonObject {
  return JSON.parse(json) as JsonObject;
}
