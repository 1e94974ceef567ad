import { field } from "../json.ts";
import { elementsOf, findMembers, folded, MemberNames, type Span } from "../request-bytes.ts";

/** Items that have all of their content with them, so that their `id` leads to nothing that the provider keeps. */
const WITH_CONTENT: ReadonlySet<unknown> = new Set([
  ...["message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"],
  ...["web_search_call", "file_search_call", "mcp_list_tools", "mcp_call", "mcp_approval_request"],
  ...["mcp_approval_response", "computer_call", "computer_call_output", "additional_tools"],
  ...["local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output"],
  ...["apply_patch_call", "apply_patch_call_output", "tool_search_call", "tool_search_output"],
]);
/** Items that have it in this member, or else it is read where the provider keeps it. */
const CONTENT_MEMBERS: ReadonlyMap<unknown, string> = new Map([
  ["reasoning", "encrypted_content"],
  ["compaction", "encrypted_content"],
  ["image_generation_call", "result"],
]);
const READ_MEMBERS = new MemberNames(["id", "type", "role", "encrypted_content", "result"]);

/**
 * The ids of a request's items that lead to items which the provider keeps. All workspaces share the provider's account, so
 * each MUST be checked to belong to the caller.
 * @param span the bytes of `input`
 * @throws Problem 400 `invalid_json` if an item has a member twice that decides this
 */
export function referencesIn(bytes: Uint8Array, span: Span | undefined, input: unknown): readonly string[] {
  if (!span || !Array.isArray(input) || !input.some(hasId)) return [];
  for (const [index, { start, end }] of elementsOf(bytes, span).entries()) {
    if (hasId(input[index])) findMembers(bytes.subarray(start, end), READ_MEMBERS);
  }
  return [...new Set(input.flatMap(referenceOf))];
}

/** Whether an item has an id, however it is spelled. Most have none, and are not searched. */
function hasId(item: unknown): boolean {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return false;
  return Object.keys(item).some((name) => name === "id" || (name.length <= 3 && folded(name) === "id"));
}

function referenceOf(item: unknown): string[] {
  const id = field(item, "id");
  if (id === undefined || id === null) return [];
  const type =
    field(item, "type") ?? (typeof field(item, "role") === "string" ? "message" : "item_reference");
  const member = CONTENT_MEMBERS.get(type);
  const content = member === undefined ? undefined : field(item, member);
  if (WITH_CONTENT.has(type) || (typeof content === "string" && content !== "")) return [];
  return [String(id)];
}
