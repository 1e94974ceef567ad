import { field } from "../json.ts";
import { elementsOf, findMembers, folded, MemberNames, type Span } from "../request-bytes.ts";

/**
 * Where the items of each type have their content. If it is present, the provider does not look up the item's `id`.
 * If it is missing, the provider may read the item from its own storage.
 */
const CONTENT: Readonly<Record<string, readonly string[]>> = {
  message: ["content"],
  function_call: ["arguments"],
  function_call_output: ["output"],
  custom_tool_call: ["input"],
  custom_tool_call_output: ["output"],
  reasoning: ["encrypted_content"],
  compaction: ["encrypted_content"],
  image_generation_call: ["result"],
  file_search_call: ["results"],
  web_search_call: ["action"],
  mcp_list_tools: ["tools"],
  mcp_call: ["output", "error"],
  mcp_approval_request: ["arguments"],
  mcp_approval_response: ["approval_request_id"],
  computer_call: ["action", "actions"],
  computer_call_output: ["output"],
  local_shell_call: ["action"],
  local_shell_call_output: ["output"],
  shell_call: ["action"],
  shell_call_output: ["output"],
  apply_patch_call: ["operation"],
  apply_patch_call_output: ["status"],
  tool_search_call: ["arguments"],
  tool_search_output: ["tools"],
  additional_tools: ["tools"],
};
const READ_MEMBERS = new MemberNames(["id", "type", "role", ...new Set(Object.values(CONTENT).flat())]);

/**
 * The ids of a request's items that may refer to items stored by the provider. All workspaces share the provider's
 * account, so each id MUST be checked to belong to the caller.
 * @param span the bytes of `input`
 * @throws Problem 400 `invalid_json` if an item has one of the deciding members twice
 */
export function referencesIn(bytes: Uint8Array, span: Span | undefined, input: unknown): readonly string[] {
  if (!span || !Array.isArray(input) || !input.some(hasId)) return [];
  for (const [index, { start, end }] of elementsOf(bytes, span).entries()) {
    if (hasId(input[index])) findMembers(bytes.subarray(start, end), READ_MEMBERS);
  }
  return [...new Set(input.flatMap(referenceOf))];
}

/** Whether an item has an id, in any spelling. Most have none and are not searched. */
function hasId(item: unknown): boolean {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return false;
  return Object.keys(item).some((name) => name === "id" || (name.length <= 3 && folded(name) === "id"));
}

function referenceOf(item: unknown): string[] {
  const id = field(item, "id");
  if (id === undefined || id === null) return [];
  const type =
    field(item, "type") ?? (typeof field(item, "role") === "string" ? "message" : "item_reference");
  const members = typeof type === "string" && Object.hasOwn(CONTENT, type) ? CONTENT[type] : undefined;
  return members?.some((name) => isContent(field(item, name))) ? [] : [String(id)];
}

function isContent(value: unknown): boolean {
  if (typeof value === "string" || Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null;
}
