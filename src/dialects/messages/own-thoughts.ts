import { field } from "../json.ts";
import { isPacked } from "../translation/signatures.ts";

/**
 * The request without thoughts from another kind of provider, whose signatures Gatehouse packed; undefined if it has
 * none. Anthropic refuses requests with signatures that are not its own, so the conversation could not continue after
 * a change of model or a fallback to the tier's next model.
 * @param value the parsed request
 */
export function withoutOwnThoughts(value: unknown): object | undefined {
  const messages = field(value, "messages");
  if (!Array.isArray(messages) || !messages.some(hasOwnThoughts)) return undefined;
  const kept = messages.flatMap((message: unknown) => {
    if (!hasOwnThoughts(message)) return [message];
    const content = message.content.filter((block) => !isOwnThought(block));
    // Messages without content are refused.
    return content.length === 0 ? [] : [{ ...message, content }];
  });
  return { ...Object(value), messages: kept };
}

function hasOwnThoughts(message: unknown): message is { readonly content: readonly unknown[] } {
  const content = field(message, "content");
  return Array.isArray(content) && content.some(isOwnThought);
}

function isOwnThought(block: unknown): boolean {
  const signature = field(block, "signature");
  return field(block, "type") === "thinking" && typeof signature === "string" && isPacked(signature);
}
