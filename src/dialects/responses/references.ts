import { invalidField } from "../../base/errors.ts";
import { ACCOUNT_MEMBERS, accountIdRefusal, OWN_MEMBERS } from "../account-ids.ts";
import { field } from "../json.ts";
import { elementsOf, findMembers, folded, MemberNames, type Span, textsWithin } from "../request-bytes.ts";

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
/**
 * Maximum number of items that a request may name. Each may belong to another response, which then has to be read.
 */
const MOST_REFERENCES = 1_024;
const READ_MEMBERS = new MemberNames(["id", "type", "role", ...new Set(Object.values(CONTENT).flat())]);

/**
 * The ids of a request's items that may refer to items stored by the provider. All workspaces share the provider's
 * account, so each id MUST be checked to belong to the caller.
 * @param span the bytes of `input`
 * @throws Problem 400 `invalid_json` if an item has a member that decides this twice; 422 `validation_failed` if
 *   there are too many
 */
export function referencesIn(bytes: Uint8Array, span: Span | undefined, input: unknown): readonly string[] {
  if (!span || !Array.isArray(input) || !input.some(hasId)) return [];
  for (const [index, { start, end }] of elementsOf(bytes, span).entries()) {
    if (hasId(input[index])) findMembers(bytes.subarray(start, end), READ_MEMBERS);
  }
  const references = referencesOf(input);
  if (references.length > MOST_REFERENCES) {
    throw invalidField("/input", `may name at most ${MOST_REFERENCES} items only by their ids`);
  }
  return references;
}

/** Whether an item has an id, in any spelling. Most have none and are not searched. */
function hasId(item: unknown): boolean {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return false;
  return Object.keys(item).some((name) => name === "id" || (name.length <= 3 && folded(name) === "id"));
}

/** The ids of items that the provider may read from its own storage. */
export function referencesOf(items: readonly unknown[]): readonly string[] {
  return [...new Set(items.flatMap((item) => referenceOf(item) ?? []))];
}

/** The id of an item without its content; null if the item has it, or no id. */
export function referenceOf(item: unknown): string | null {
  const id = field(item, "id");
  if (id === undefined || id === null) return null;
  const type =
    field(item, "type") ?? (typeof field(item, "role") === "string" ? "message" : "item_reference");
  const members = typeof type === "string" && Object.hasOwn(CONTENT, type) ? CONTENT[type] : undefined;
  return members?.some((name) => isContent(field(item, name))) ? null : String(id);
}

function isContent(value: unknown): boolean {
  if (typeof value === "string" || Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null;
}

const CONTAINER_MEMBERS = ["container", "container_id"];
const ID_MEMBERS = new MemberNames([...ACCOUNT_MEMBERS, ...CONTAINER_MEMBERS]);
/** Also skips annotations and results, which state where a text comes from: the provider resolves no ids in them. */
const NO_IDS: ReadonlySet<string> = new Set([...OWN_MEMBERS, "annotations", "results"]);

/**
 * The ids of containers that a request names anywhere. Each MUST be checked to belong to the caller.
 * @throws Problem 404 `not_found` if it names anything else in the provider's account
 */
export function containersIn(bytes: Uint8Array): readonly string[] {
  const containers = new Set<string>();
  for (const { name, text } of textsWithin(bytes, ID_MEMBERS, NO_IDS)) {
    if (text === "") continue;
    // Stored responses do not prove who owns these.
    if (ACCOUNT_MEMBERS.includes(name)) throw accountIdRefusal(name, text);
    containers.add(text);
  }
  return [...containers];
}

/** @throws Problem 404 `not_found` unless these outputs were made in each of the containers */
export function requireContainers(containers: readonly string[], outputs: readonly unknown[]): void {
  const items = outputs.flatMap((output): unknown[] => (Array.isArray(output) ? output : []));
  const own = new Set(items.map((item) => field(item, "container_id")));
  for (const id of containers) if (!own.has(id)) throw accountIdRefusal("container", id);
}
