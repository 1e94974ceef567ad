import { field, isMembers } from "../json.ts";
import {
  elementsOf,
  findMembers,
  folded,
  MemberNames,
  type RequestMembers,
  type Span,
} from "../request-bytes.ts";

/** Tools that the provider runs itself. */
const HOSTED = /^(?:web_search|file_search|code_interpreter|image_generation|mcp)(?:_preview)?(?:_\d+)*$/;
/** Runs on the client, unless its environment belongs to the provider. */
const SHELL = "shell";
const HOSTED_ENVIRONMENTS: ReadonlySet<unknown> = new Set(["container_auto", "container_reference"]);
const MOST_HOSTED = 16;
/** The maximum length of a type in the ledger: entries are kept forever, and a type may have any number of digits. */
const LONGEST_TYPE = 64;

const TOOL_MEMBERS = new MemberNames(["type", "environment", "tools"]);
const TYPE = new MemberNames(["type"]);

/**
 * The types of the provider's own tools that a request offers. Their actions are not subject to Gatehouse's policy,
 * so the ledger shows that they were offered.
 * @throws Problem 400 `invalid_json` if a tool, or an item with tools, has a member that decides this twice
 */
export function hostedTools(
  bytes: Uint8Array,
  value: unknown,
  { spans }: Pick<RequestMembers, "spans">,
): string | undefined {
  const types = [
    ...typesIn(bytes, spans.get("tools"), field(value, "tools"), 1),
    // Items may contain tools too.
    ...nestedTypes(bytes, spans.get("input"), field(value, "input"), 2),
  ];
  return types.length === 0 ? undefined : [...new Set(types)].slice(0, MOST_HOSTED).join(",");
}

/** @param depth how often tools may contain others, as namespaces do */
function typesIn(
  bytes: Uint8Array,
  span: Span | undefined,
  tools: unknown,
  depth: number,
): readonly string[] {
  if (!span || !Array.isArray(tools)) return [];
  const types = elementsOf(bytes, span).flatMap(({ start, end }, index) => {
    const tool: unknown = tools[index];
    if (!isMembers(tool)) return [];
    const own = bytes.subarray(start, end);
    const span = findMembers(own, TOOL_MEMBERS).spans.get("environment");
    const { type, environment } = tool;
    if (span && isMembers(environment)) findMembers(own.subarray(span.start, span.end), TYPE);
    if (typeof type !== "string") return [];
    const runsShell = type === SHELL && HOSTED_ENVIRONMENTS.has(field(environment, "type"));
    return runsShell || HOSTED.test(type) ? [type.slice(0, LONGEST_TYPE)] : [];
  });
  return depth === 0 ? types : [...types, ...nestedTypes(bytes, span, tools, depth)];
}

/** Tools in the `tools` of items or of other tools. */
function nestedTypes(
  bytes: Uint8Array,
  span: Span | undefined,
  items: unknown,
  depth: number,
): readonly string[] {
  if (!span || !Array.isArray(items) || !items.some(hasTools)) return [];
  return elementsOf(bytes, span).flatMap(({ start, end }, index) => {
    const item: unknown = items[index];
    if (!hasTools(item)) return [];
    const own = bytes.subarray(start, end);
    return typesIn(own, findMembers(own, TOOL_MEMBERS).spans.get("tools"), field(item, "tools"), depth - 1);
  });
}

/** Whether a value has tools, however that is spelled. Most have none, and are not searched. */
function hasTools(value: unknown): boolean {
  return isMembers(value) && Object.keys(value).some((name) => name.length === 5 && folded(name) === "tools");
}
