import { type ConversationItem, inputItemsOf, itemSent, type ResponseLinks } from "./linked-conversation.ts";

type Members = Readonly<Record<string, unknown>>;

/** Item types that a model itself writes. Every other item of its output refers to data that its provider stores. */
const WRITTEN: ReadonlySet<unknown> = new Set(["message", "function_call", "custom_tool_call"]);

/**
 * A request's `input` with the whole conversation, for a provider that knows none of its ids.
 * @param provider the name of the provider
 */
export function wholeInput(links: ResponseLinks, input: unknown, provider: string): readonly unknown[] {
  const own = inputItemsOf(input).map((item) => itemSent(links, item));
  return [...links.before, ...own].flatMap((each) => portable(each, provider));
}

/**
 * An item without the parts that only its own provider understands: ids, results of that provider's tools, and
 * reasoning. Reasoning stays if its signed text is present and the provider is the same. Otherwise it is left out, as
 * providers do themselves.
 */
function portable({ item, provider: maker }: ConversationItem, provider: string): readonly unknown[] {
  if (maker === null) return [item];
  const members: Members = typeof item === "object" && item !== null ? { ...item } : {};
  const { id: _, status: __, ...rest } = members;
  if (WRITTEN.has(rest.type)) return [rest];
  const isSigned = typeof rest.encrypted_content === "string" && rest.encrypted_content !== "";
  return rest.type === "reasoning" && isSigned && maker === provider ? [rest] : [];
}
