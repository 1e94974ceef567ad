import { Problem } from "../../../base/errors.ts";
import { field } from "../../json.ts";
import { inputItemsOf, itemSent, type ResponseLinks } from "./linked-conversation.ts";

/** Selects the listed items of a request. */
export interface InputItemQuery {
  readonly limit: number;
  /** The id of the item before the first one on the page. */
  readonly after: string | undefined;
  readonly order: "asc" | "desc";
}

type Item = Readonly<Record<string, unknown>> & { readonly id: string };

/** In OpenAI's format. */
export interface InputItemPage {
  readonly object: "list";
  readonly data: readonly Item[];
  readonly has_more: boolean;
  readonly first_id: string | null;
  readonly last_id: string | null;
}

/**
 * A page of the items that a response answers, including the earlier conversation, in OpenAI's format.
 * @param id the response's id
 * @param input the `input` of its request
 */
export function inputItemPage(
  id: string,
  input: unknown,
  links: ResponseLinks,
  { limit, after, order }: InputItemQuery,
): InputItemPage {
  const own = inputItemsOf(input).map((item) => itemSent(links, item));
  const items = [...links.before, ...own].map(({ item }) => item);
  if (order === "desc") items.reverse();
  // Counted from the end, because the beginning of a conversation may have been erased since the previous page.
  const positionOf = (index: number) => (order === "desc" ? index + 1 : items.length - index);
  const names = new ItemIds(id);
  const from = after === undefined ? 0 : 1 + indexOf(after, items, names, positionOf);
  const page = items.slice(from, from + limit);
  const data = page.map((item, index) => viewItem(item, names, positionOf(from + index)));
  return {
    ...{ object: "list" as const, data, has_more: from + limit < items.length },
    ...{ first_id: data.at(0)?.id ?? null, last_id: data.at(-1)?.id ?? null },
  };
}

/** @throws Problem 404 `not_found` */
function indexOf(
  id: string,
  items: readonly unknown[],
  names: ItemIds,
  positionOf: (index: number) => number,
): number {
  const position = names.positionIn(id);
  const index = items.findIndex((item, index) => {
    const own = field(item, "id");
    if (typeof own === "string") return own === id;
    return positionOf(index) === position && names.idOf(field(item, "type"), position) === id;
  });
  if (index >= 0) return index;
  throw new Problem("not_found", "The response has no such item.", {
    errors: [{ path: "/after", message: "must be the id of an item in the list" }],
  });
}

/** Clients expect every item to have an id, and a message's content to be in parts. */
function viewItem(item: unknown, names: ItemIds, position: number): Item {
  const members = typeof item === "object" && item !== null ? { ...item } : {};
  const given = field(members, "id");
  const id = typeof given === "string" ? given : names.idOf(field(members, "type"), position);
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

const POSITION_DIGITS = 8;

/** Generates ids for the items of a response that have none. The ids are the same in every listing. */
class ItemIds {
  readonly #hash: string;

  constructor(response: string) {
    this.#hash = new Bun.CryptoHasher("sha256").update(response).digest("hex").slice(0, 24);
  }

  /** @param position counted from the end, from 1 */
  idOf(type: unknown, position: number): string {
    const last = position.toString(16).padStart(POSITION_DIGITS, "0");
    return `${PREFIXES.get(type ?? "message") ?? "item"}_${this.#hash}${last}`;
  }

  /** The position in an id. Meaningless if the id is not of this form. */
  positionIn(id: string): number {
    return Number.parseInt(id.slice(-POSITION_DIGITS), 16);
  }
}
