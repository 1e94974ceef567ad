import { Problem } from "../../../base/errors.ts";
import { field } from "../../json.ts";
import { referenceOf } from "../references.ts";
import { type ConversationItem, inputItemsOf, type ResponseLinks } from "./links.ts";
import type { StoredResponse } from "./store.ts";

/** Selects the listed items of a request. */
export interface InputItemQuery {
  readonly limit: number;
  /** The id of the item before the first one on the page. */
  readonly after: string | undefined;
  readonly order: "asc" | "desc";
}

type Item = Readonly<Record<string, unknown>> & { readonly id: string };

/** In OpenAI's form. */
export interface InputItemPage {
  readonly object: "list";
  readonly data: readonly Item[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
}

/** A page of the items that a response answers, including the earlier conversation, in OpenAI's form. */
export function inputItemPage(
  { row, request }: StoredResponse,
  links: ResponseLinks,
  { limit, after, order }: InputItemQuery,
): InputItemPage {
  const own = inputItemsOf(field(request, "input")).map((item): ConversationItem => {
    const id = referenceOf(item);
    return (id === null ? undefined : links.items.get(id)) ?? { item, provider: null };
  });
  const all = [...links.before, ...own];
  // Counted from the end: the beginning of a conversation may have been erased since the page before.
  const items = all.map(({ item }, index) => viewItem(row.id, item, all.length - index));
  if (order === "desc") items.reverse();
  const from = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && from === 0) {
    throw new Problem("not_found", "The response has no such item.", {
      errors: [{ path: "/after", message: "must be the id of an item in the list" }],
    });
  }
  const data = items.slice(from, from + limit);
  return {
    ...{ object: "list" as const, data, has_more: from + limit < items.length },
    ...{ first_id: data.at(0)?.id ?? null, last_id: data.at(-1)?.id ?? null },
  };
}

/** Clients expect every item to have an id, and a message's content to be in parts. */
function viewItem(response: string, item: unknown, index: number): Item {
  const members = typeof item === "object" && item !== null ? { ...item } : {};
  const given = field(members, "id");
  const id = typeof given === "string" ? given : idOf(response, field(members, "type"), index);
  const role = field(members, "role");
  if (typeof role !== "string") return { ...members, id };
  const content = field(members, "content");
  const type = role === "assistant" ? "output_text" : "input_text";
  const parts = typeof content === "string" ? [{ type, text: content }] : content;
  return { type: "message", status: "completed", ...members, id, content: parts };
}

/** How OpenAI's ids of items begin. An item without a type is a message. */
const PREFIXES: ReadonlyMap<unknown, string> = new Map([
  ["message", "msg"],
  ["reasoning", "rs"],
  ["function_call", "fc"],
  ["function_call_output", "fco"],
  ["custom_tool_call", "ctc"],
  ["custom_tool_call_output", "ctco"],
]);

/** An item's id, which is the same in every listing. */
function idOf(response: string, type: unknown, index: number): string {
  const hash = new Bun.CryptoHasher("sha256").update(`${response}/${index}`).digest("hex");
  return `${PREFIXES.get(type ?? "message") ?? "item"}_${hash.slice(0, 32)}`;
}
