import { field } from "../json.ts";
import { isPacked } from "../translation/signatures.ts";

/**
 * A request without the thoughts that Gatehouse has signed for a provider of another kind; undefined if it has none.
 * Anthropic refuses a request with a signature that is not its own, so after a change of the model, or a fallback to the
 * next of a tier, the conversation could not go on.
 * @param value a request as parsed
 */
export function withoutOwnThoughts(value: unknown): object | undefined {
  const messages = field(value, "messages");
  if (!Array.isArray(messages) || !messages.some(hasOwnThoughts)) return undefined;
  const kept = messages.flatMap((message: unknown) => {
    if (!hasOwnThoughts(message)) return [message];
    const content = message.content.filter((block) => !isOwnThought(block));
    // A message without content is refused.
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
