import type { JsonObject, JsonSchema } from "../../agents/index.ts";
import { MOST_HOPS, PATH_META, readMeta } from "../../base/via.ts";
import { sizeOf } from "../arguments/json.ts";
import { ConnectorError, type ToolAnnotations, type ToolDescription } from "../source.ts";
import { bytesOfTool, type KeptTool, keepTool } from "../tools/kept-tool.ts";
import { TOOL_LIMITS } from "../tools/memory-share.ts";
import { offeredNames } from "./names.ts";
import type { UpstreamParts } from "./parts.ts";
import { firstOf, isObject } from "./shape.ts";

const MOST_PAGES = 100;
const MOST_TOOLS = TOOL_LIMITS.connector.tools;
/** Maximum size in bytes of all tools in memory, including their upstream's own names. */
const LIST_LIMIT = TOOL_LIMITS.connector.bytes;
const OWN_NAME_LIMIT = 1_000;
const TITLE_LIMIT = 300;
const DESCRIPTION_LIMIT = 4_000;
/** Maximum number of characters of one schema as JSON. */
const SCHEMA_LIMIT = 65_536;
/**
 * Maximum number of values in one schema: parsed, each takes about 50 bytes. The largest schemas that people write
 * have a few thousand.
 */
const SCHEMA_VALUES = 10_000;
/** Maximum number of characters of an upstream's own tool name that a warning repeats. */
const SHOWN_NAME = 100;
const HINTS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

/** Requests one page of `tools/list`. */
export type FetchToolPage = (cursor: string | undefined) => Promise<Readonly<Record<string, unknown>>>;

/** A connector's tools, and a message for each of the upstream's tools that was omitted. */
export interface ToolListing {
  readonly tools: readonly KeptTool[];
  readonly leftOut: readonly string[];
}

type ListParts = Pick<UpstreamParts, "name" | "mask" | "instance">;

/**
 * Reads all pages of an upstream's tools. Each page is converted to the form that is kept before the next one is
 * requested.
 * @throws ConnectorError
 */
export async function listTools(ask: FetchToolPage, parts: ListParts): Promise<ToolListing> {
  const gathered = new GatheredTools(parts);
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 1; ; page += 1) {
    const { tools, nextCursor } = await ask(cursor);
    if (!Array.isArray(tools)) throw invalid("a page without tools");
    if (!tools.every((tool) => gathered.add(tool))) break;
    // Some servers mark the last page with an empty cursor.
    if (typeof nextCursor !== "string" || nextCursor === "") break;
    if (seen.has(nextCursor)) throw invalid("the same page of tools repeatedly");
    if (page === MOST_PAGES) {
      gathered.leaveOut(`every page after the first ${MOST_PAGES}`);
      break;
    }
    seen.add(nextCursor);
    cursor = nextCursor;
  }
  return gathered.list();

  function invalid(what: string): ConnectorError {
    return new ConnectorError("invalid_answer", `The connector ${parts.name} answered with ${what}.`);
  }
}

/** The tools of the pages received so far. */
class GatheredTools {
  readonly #parts: ListParts;
  /** By the upstream's own name. A string says why the tool is not offered; its name still counts as used. */
  readonly #tools = new Map<string, KeptTool | string>();
  readonly #leftOut: string[] = [];
  #entries = 0;
  #bytes = 0;

  constructor(parts: ListParts) {
    this.#parts = parts;
  }

  leaveOut(what: string): void {
    this.#leftOut.push(what);
  }

  /** @returns whether more tools are accepted */
  add(tool: unknown): boolean {
    this.#entries += 1;
    if (this.#entries > MOST_TOOLS) {
      this.leaveOut(`every tool after the first ${MOST_TOOLS}`);
      return false;
    }
    const refused = this.#refuseName(tool);
    if (refused !== undefined) this.leaveOut(refused);
    else if (isNamed(tool)) return this.#take(tool);
    return true;
  }

  list(): ToolListing {
    const names = offeredNames([...this.#tools.keys()]);
    const tools: KeptTool[] = [];
    for (const [ownName, tool] of this.#tools) {
      const name = names.get(ownName) ?? ownName;
      if (typeof tool === "string") this.leaveOut(`the tool ${name}${tool}`);
      else tools.push({ ...tool, name });
    }
    return { tools, leftOut: this.#leftOut };
  }

  #take(tool: NamedTool): boolean {
    const refusal = refusalOf(tool, this.#parts);
    if (refusal !== undefined) {
      this.#tools.set(tool.name, refusal);
      return true;
    }
    const path = readMeta(tool._meta, PATH_META);
    const kept = keepTool({
      ...describe(this.#parts.mask.json(tool)),
      name: tool.name,
      ...(path.length > 0 ? { path } : {}),
      // The binding identifies the tool to the upstream, and MUST stay unchanged.
      binding: { name: tool.name },
    });
    this.#bytes += bytesOfTool(kept) + 2 * tool.name.length;
    const fits = this.#bytes <= LIST_LIMIT;
    this.#tools.set(tool.name, fits ? kept : " and all after it: together they are too large");
    return fits;
  }

  #refuseName(tool: unknown): string | undefined {
    if (!isObject(tool)) return "an entry that is not a tool";
    if (!isNamed(tool)) return "a tool without a name";
    const { name } = tool;
    if (this.#parts.mask.text(name) !== name) return "a tool with a secret in its name";
    if (this.#tools.has(name)) return `a second tool ${firstOf(JSON.stringify(name), SHOWN_NAME)}`;
    return undefined;
  }
}

type NamedTool = JsonObject & { readonly name: string };

function isNamed(tool: unknown): tool is NamedTool {
  if (!isObject(tool)) return false;
  const { name } = tool;
  return typeof name === "string" && name !== "" && name.length <= OWN_NAME_LIMIT;
}

/** Why a tool is not offered, as the end of a sentence that begins with its name. */
function refusalOf(
  { inputSchema, execution, _meta: meta }: NamedTool,
  { instance }: ListParts,
): string | undefined {
  if (isTooLarge(inputSchema)) return ", whose input schema is too large";
  if (isObject(execution) && execution.taskSupport === "required")
    return ", which can only be called as a task";
  const path = readMeta(meta, PATH_META);
  if (path.includes(instance) || path.length >= MOST_HOPS) return ", which leads back to this Gatehouse";
  return undefined;
}

function describe(tool: JsonObject): Omit<ToolDescription, "name" | "binding"> {
  const { title, description, inputSchema, outputSchema } = tool;
  const annotations = isObject(tool.annotations) ? knownAnnotations(tool.annotations) : undefined;
  return {
    description: typeof description === "string" ? firstOf(description, DESCRIPTION_LIMIT) : "",
    inputSchema: isObjectSchema(inputSchema) ? inputSchema : { type: "object" },
    destructive: annotations?.destructiveHint === true,
    ...(typeof title === "string" ? { title: firstOf(title, TITLE_LIMIT) } : {}),
    ...(isObjectSchema(outputSchema) && !isTooLarge(outputSchema) ? { outputSchema } : {}),
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

function isTooLarge(schema: unknown): boolean {
  return (
    sizeOf(schema, SCHEMA_VALUES) > SCHEMA_VALUES || (JSON.stringify(schema)?.length ?? 0) > SCHEMA_LIMIT
  );
}
