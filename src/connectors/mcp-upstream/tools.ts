import type { JsonObject, JsonSchema } from "../../agents/index.ts";
import { MOST_HOPS, PATH_META, readMeta } from "../../base/via.ts";
import { ConnectorError, type OfferedTool, type ToolAnnotations } from "../source.ts";
import { offeredNames } from "./names.ts";
import type { UpstreamParts } from "./parts.ts";
import { firstOf, isObject } from "./shape.ts";

const MOST_PAGES = 100;
const MOST_TOOLS = 1_000;
/** Characters of all tools as JSON. */
const LIST_LIMIT = 8_000_000;
const OWN_NAME_LIMIT = 1_000;
const TITLE_LIMIT = 300;
const DESCRIPTION_LIMIT = 4_000;
/** Characters of one schema as JSON. */
const SCHEMA_LIMIT = 65_536;
/** Characters of an upstream's own name that a warning repeats. */
const SHOWN_NAME = 100;
const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

/** Asks for one page of `tools/list`. */
export type AskPage = (cursor: string | undefined) => Promise<Readonly<Record<string, unknown>>>;

/** What a connector offers, and what of the upstream's list was left out, in words. */
export interface Listed {
  readonly tools: readonly OfferedTool[];
  readonly leftOut: readonly string[];
}

type ListParts = Pick<UpstreamParts, "name" | "mask" | "instance">;

/** All pages of an upstream's tools. @throws ConnectorError */
export async function listTools(ask: AskPage, parts: ListParts): Promise<Listed> {
  const leftOut: string[] = [];
  const found: JsonObject[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 1; ; page += 1) {
    const { tools, nextCursor } = await ask(cursor);
    if (!Array.isArray(tools)) throw invalid("a page without tools");
    for (const tool of tools.slice(0, MOST_TOOLS + 1 - found.length)) {
      if (isObject(tool)) found.push(tool);
      else leftOut.push("something that is no tool");
    }
    if (found.length > MOST_TOOLS) {
      leftOut.push(`every tool after the first ${MOST_TOOLS}`);
      break;
    }
    // Some say that there is no more with an empty text.
    if (typeof nextCursor !== "string" || nextCursor === "") break;
    if (seen.has(nextCursor)) throw invalid("the same page of tools again and again");
    if (page === MOST_PAGES) {
      leftOut.push(`every page after the first ${MOST_PAGES}`);
      break;
    }
    seen.add(nextCursor);
    cursor = nextCursor;
  }
  return offer(found.slice(0, MOST_TOOLS), leftOut, parts);

  function invalid(what: string): ConnectorError {
    return new ConnectorError("invalid_answer", `The connector ${parts.name} answered with ${what}.`);
  }
}

function offer(found: readonly JsonObject[], leftOut: string[], parts: ListParts): Listed {
  const own = new Map<string, JsonObject>();
  for (const tool of found) {
    const { name } = tool;
    if (typeof name !== "string" || name === "" || name.length > OWN_NAME_LIMIT)
      leftOut.push("a tool without a name");
    else if (parts.mask.text(name) !== name) leftOut.push("a tool with a secret in its name");
    else if (own.has(name)) leftOut.push(`a second tool ${firstOf(JSON.stringify(name), SHOWN_NAME)}`);
    else own.set(name, tool);
  }
  const tools: OfferedTool[] = [];
  let length = 0;
  const names = offeredNames([...own.keys()]);
  for (const [ownName, tool] of own) {
    const name = names.get(ownName) ?? ownName;
    if (lengthOf(tool.inputSchema) > SCHEMA_LIMIT) {
      leftOut.push(`the tool ${name}, whose input schema is too large`);
      continue;
    }
    if (isObject(tool.execution) && tool.execution.taskSupport === "required") {
      leftOut.push(`the tool ${name}, which is called as a task alone`);
      continue;
    }
    const path = readMeta(tool._meta, PATH_META);
    if (path.includes(parts.instance) || path.length >= MOST_HOPS) {
      leftOut.push(`the tool ${name}, which leads back to this Gatehouse`);
      continue;
    }
    // The binding is what the upstream is asked with, and MUST stay as it is.
    const offered = {
      ...describe(parts.mask.json(tool)),
      name,
      ...(path.length > 0 ? { path } : {}),
      binding: { name: ownName },
    };
    length += lengthOf(offered);
    if (length > LIST_LIMIT) {
      leftOut.push(`the tool ${name} and those behind it: together they are too large`);
      break;
    }
    tools.push(offered);
  }
  return { tools, leftOut };
}

function describe(tool: JsonObject): Omit<OfferedTool, "name" | "binding"> {
  const { title, description, inputSchema, outputSchema } = tool;
  const annotations = isObject(tool.annotations) ? knownAnnotations(tool.annotations) : undefined;
  return {
    description: typeof description === "string" ? firstOf(description, DESCRIPTION_LIMIT) : "",
    inputSchema: isObjectSchema(inputSchema) ? inputSchema : { type: "object" },
    destructive: annotations?.destructiveHint === true,
    ...(typeof title === "string" ? { title: firstOf(title, TITLE_LIMIT) } : {}),
    ...(isObjectSchema(outputSchema) && lengthOf(outputSchema) <= SCHEMA_LIMIT ? { outputSchema } : {}),
    ...(annotations ? { annotations } : {}),
  };
}

function knownAnnotations(given: JsonObject): ToolAnnotations {
  const { title } = given;
  const hints = HINTS.flatMap((hint) => (typeof given[hint] === "boolean" ? [[hint, given[hint]]] : []));
  return {
    ...(typeof title === "string" ? { title: firstOf(title, TITLE_LIMIT) } : {}),
    ...Object.fromEntries(hints),
  };
}

function isObjectSchema(value: unknown): value is JsonSchema {
  return isObject(value) && value.type === "object";
}

function lengthOf(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0;
}
