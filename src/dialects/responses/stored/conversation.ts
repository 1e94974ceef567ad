import { field } from "../../json.ts";
import { referenceOf } from "../references.ts";
import { type ConversationItem, inputItemsOf, type ResponseLinks } from "./links.ts";

type Members = Readonly<Record<string, unknown>>;

/** Item types that a model itself writes. Every other item of its output refers to data that its provider stores. */
const WRITTEN: ReadonlySet<unknown> = new Set(["message", "function_call", "custom_tool_call"]);

/**
 * A request's `input` with the whole conversation, for a provider that knows none of its ids.
 * @param provider the name of the provider
 */
export function wholeInput(links: ResponseLinks, input: unknown, provider: string): readonly unknown[] {
  const own = inputItemsOf(input).map((item): ConversationItem => {
    const id = linkedId(links, item);
    return (id === null ? undefined : links.items.get(id)) ?? { item, provider: null };
  });
  return [...links.before, ...own].flatMap((each) => portable(each, provider));
}

/** The id of an item that the provider would look up. */
function linkedId({ items }: ResponseLinks, item: unknown): string | null {
  const id = field(item, "id");
  return referenceOf(item) ?? (typeof id === "string" && items.has(id) ? id : null);
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
