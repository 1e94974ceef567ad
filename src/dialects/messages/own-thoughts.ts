import { field } from "../json.ts";
import { type Edit, elementsOf, findMembers, MemberNames, removals, type Span } from "../request-bytes.ts";
import { isPacked } from "../translation/signatures.ts";

const MESSAGES = new MemberNames(["messages"]);
const CONTENT = new MemberNames(["content"]);

/**
 * The edits that remove thoughts of other providers, whose signatures Gatehouse packed; empty if there are none.
 * Anthropic refuses requests with signatures that are not its own, so the conversation could not continue after a
 * change of model or a fallback to the tier's next model.
 * @param value the parsed request
 * @throws Problem 400 `invalid_json` if the request has `messages` twice, or a message with such thoughts has
 *   `content` twice
 */
export function withoutOwnThoughts(bytes: Uint8Array, value: unknown): readonly Edit[] {
  const messages = field(value, "messages");
  if (!Array.isArray(messages) || !messages.some(hasOwnThoughts)) return [];
  const list = findMembers(bytes, MESSAGES).spans.get("messages");
  const edits: Edit[] = [];
  const emptied: Span[] = [];
  for (const [index, span] of (list ? elementsOf(bytes, list) : []).entries()) {
    const message: unknown = messages[index];
    if (!hasOwnThoughts(message)) continue;
    const content = findMembers(bytes, CONTENT, span.start).spans.get("content");
    const blocks = content ? elementsOf(bytes, content) : [];
    const removed = blocks.filter((_, block) => isOwnThought(message.content[block]));
    // Messages without content are refused.
    if (removed.length === blocks.length) emptied.push(span);
    else edits.push(...removals(bytes, removed));
  }
  return [...edits, ...removals(bytes, emptied)];
}

function hasOwnThoughts(message: unknown): message is { readonly content: readonly unknown[] } {
  const content = field(message, "content");
  return Array.isArray(content) && content.some(isOwnThought);
}

function isOwnThought(block: unknown): boolean {
  const signature = field(block, "signature");
  return field(block, "type") === "thinking" && typeof signature === "string" && isPacked(signature);
}
