import type {
  JSONObject,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ToolChoice,
} from "@ai-sdk/provider";
import { listAt, objectAt, optional, type ReadonlyMembers, textAt } from "../../translation/fields.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";
import { flatName } from "./tool-names.ts";

const FUNCTION: ReadonlySet<string> = new Set(["type", "name", "description", "parameters", "strict"]);
const NAMESPACE: ReadonlySet<string> = new Set(["type", "name", "description", "tools"]);
const CHOICE: ReadonlySet<string> = new Set(["type", "name"]);
/** The longest name of a tool that all providers accept. */
const LONGEST_NAME = 64;

/** The client's tools. Each tool in a namespace gets a flat name, since models do not know namespaces. */
export function readTools(value: unknown, path: string): LanguageModelV4FunctionTool[] {
  const tools: LanguageModelV4FunctionTool[] = [];
  const known = new Set<string>();
  const add = (tool: LanguageModelV4FunctionTool, at: string): void => {
    if (known.has(tool.name)) throw unsupported(`${at}.name`, "is also the name of another tool.");
    known.add(tool.name);
    tools.push(tool);
  };
  for (const [index, each] of listAt(value, path).entries()) {
    const at = `${path}[${index}]`;
    const tool = objectAt(each, at);
    if (tool.type === "namespace") {
      for (const [inner, innerAt] of readNamespace(tool, at)) add(inner, innerAt);
    } else add(readFunction(tool, at), at);
  }
  return tools;
}

function readNamespace(
  namespace: ReadonlyMembers,
  path: string,
): (readonly [LanguageModelV4FunctionTool, string])[] {
  refuseUnknown(namespace, NAMESPACE, path);
  const name = textAt(namespace.name, `${path}.name`);
  const description = optional(namespace.description, `${path}.description`, textAt);
  return listAt(namespace.tools, `${path}.tools`).map((each, index) => {
    const at = `${path}.tools[${index}]`;
    const tool = readFunction(objectAt(each, at), at);
    const flat = flatName(name, tool.name);
    if (flat.length > LONGEST_NAME) {
      throw unsupported(
        `${at}.name`,
        `is too long together with its namespace. The limit is ${LONGEST_NAME} characters.`,
      );
    }
    const described = [description, tool.description].filter((text) => text !== undefined).join("\n\n");
    return [{ ...tool, name: flat, ...(described === "" ? {} : { description: described }) }, at] as const;
  });
}

function readFunction(tool: ReadonlyMembers, path: string): LanguageModelV4FunctionTool {
  if (tool.type !== "function") {
    throw unsupported(`${path}.type`, "must be function or namespace for this model's provider.");
  }
  refuseUnknown(tool, FUNCTION, path);
  const description = optional(tool.description, `${path}.description`, textAt);
  const schema = optional(tool.parameters, `${path}.parameters`, objectAt);
  return {
    type: "function",
    name: textAt(tool.name, `${path}.name`),
    // Without parameters, a tool takes none.
    inputSchema: schema ? { ...schema } : { type: "object", properties: {} },
    ...(description === undefined ? {} : { description }),
    ...(tool.strict === true ? { strict: true } : {}),
  };
}

export function readToolChoice(value: unknown, path: string): LanguageModelV4ToolChoice {
  if (value === "auto" || value === "none" || value === "required") return { type: value };
  const choice = objectAt(value, path);
  if (choice.type !== "function") {
    throw unsupported(`${path}.type`, "must be function for this model's provider.");
  }
  refuseUnknown(choice, CHOICE, path);
  return { type: "tool", toolName: textAt(choice.name, `${path}.name`) };
}

const FORMAT: ReadonlySet<string> = new Set(["type", "name", "description", "schema", "strict"]);

/** Undefined for ordinary text. */
export function readFormat(
  value: unknown,
  path: string,
): LanguageModelV4CallOptions["responseFormat"] | undefined {
  const format = objectAt(value, path);
  refuseUnknown(format, FORMAT, path);
  if (format.type === "text") return undefined;
  if (format.type === "json_object") return { type: "json" };
  if (format.type !== "json_schema") {
    throw unsupported(`${path}.type`, "is not a format that can be translated.");
  }
  const schema = objectAt(format.schema, `${path}.schema`) as JSONObject;
  const description = optional(format.description, `${path}.description`, textAt);
  return {
    ...{ type: "json", name: textAt(format.name, `${path}.name`), schema },
    ...(description === undefined ? {} : { description }),
  };
}
