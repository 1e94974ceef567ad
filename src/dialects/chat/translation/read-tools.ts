import type {
  JSONObject,
  LanguageModelV4CallOptions,
  LanguageModelV4FunctionTool,
  LanguageModelV4ToolChoice,
} from "@ai-sdk/provider";
import { booleanAt, listAt, objectAt, optional, textAt } from "../../translation/fields.ts";
import { refuseUnknown, unsupported } from "../../translation/unsupported.ts";

const TOOL = new Set(["type", "function"]);
const FUNCTION = new Set(["name", "description", "parameters", "strict"]);
const CHOICE = new Set(["type", "function"]);
const CHOSEN = new Set(["name"]);

export function readTools(value: unknown, path: string): LanguageModelV4FunctionTool[] {
  return listAt(value, path).map((each, index) => {
    const at = `${path}[${index}]`;
    const tool = objectAt(each, at);
    if (tool.type !== "function") {
      throw unsupported(`${at}.type`, "must be function for this model's provider.");
    }
    refuseUnknown(tool, TOOL, at);
    const called = objectAt(tool.function, `${at}.function`);
    refuseUnknown(called, FUNCTION, `${at}.function`);
    const description = optional(called.description, `${at}.function.description`, textAt);
    const schema = optional(called.parameters, `${at}.function.parameters`, objectAt);
    return {
      type: "function",
      name: textAt(called.name, `${at}.function.name`),
      // Without parameters, a tool takes none.
      inputSchema: schema ? { ...schema } : { type: "object", properties: {} },
      ...(description === undefined ? {} : { description }),
      ...(optional(called.strict, `${at}.function.strict`, booleanAt) === true ? { strict: true } : {}),
    };
  });
}

export function readToolChoice(value: unknown, path: string): LanguageModelV4ToolChoice {
  if (value === "auto" || value === "none" || value === "required") return { type: value };
  const choice = objectAt(value, path);
  if (choice.type !== "function") {
    throw unsupported(`${path}.type`, "must be function for this model's provider.");
  }
  refuseUnknown(choice, CHOICE, path);
  const chosen = objectAt(choice.function, `${path}.function`);
  refuseUnknown(chosen, CHOSEN, `${path}.function`);
  return { type: "tool", toolName: textAt(chosen.name, `${path}.function.name`) };
}

const FORMAT = new Set(["type", "json_schema"]);
const SCHEMA = new Set(["name", "description", "schema", "strict"]);

/** Undefined for ordinary text. */
export function readResponseFormat(
  value: unknown,
  path: string,
): LanguageModelV4CallOptions["responseFormat"] | undefined {
  const format = objectAt(value, path);
  refuseUnknown(format, FORMAT, path);
  if (format.type === "text") return undefined;
  if (format.type === "json_object") return { type: "json" };
  if (format.type !== "json_schema")
    throw unsupported(`${path}.type`, "is not a format that can be translated.");
  const at = `${path}.json_schema`;
  const asked = objectAt(format.json_schema, at);
  refuseUnknown(asked, SCHEMA, at);
  const schema = optional(asked.schema, `${at}.schema`, objectAt) as JSONObject | undefined;
  const description = optional(asked.description, `${at}.description`, textAt);
  const strict = optional(asked.strict, `${at}.strict`, booleanAt);
  if (strict === true && !schema) throw unsupported(`${at}.strict`, "needs a schema.");
  return {
    ...{ type: "json", name: textAt(asked.name, `${at}.name`) },
    ...(schema === undefined ? {} : { schema }),
    ...(description === undefined ? {} : { description }),
  };
}
