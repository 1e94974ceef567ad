import { field, isMembers } from "../json.ts";
import {
  type Edit,
  elementsOf,
  findMembers,
  MemberNames,
  type MemberSpan,
  removals,
  type Span,
} from "../request-bytes.ts";
import { isPacked } from "../translation/signatures.ts";
import { GATEHOUSE } from "./translation/signed-thoughts.ts";

const MESSAGES = new MemberNames(["messages"]);
const TOOL_CALLS = new MemberNames(["tool_calls"]);
const EXTRA = new MemberNames(["extra_content"]);

/**
 * The edits that remove the signatures and thoughts that Gatehouse sent to the client with a tool call; empty if
 * there are none. They belong to a provider that does not support this API, and only Gatehouse can read them.
 * @param value the parsed request
 * @throws Problem 400 `invalid_json` if a member that leads to one of them occurs twice
 */
export function withoutOwnSignatures(bytes: Uint8Array, value: unknown): readonly Edit[] {
  const messages = field(value, "messages");
  if (!Array.isArray(messages) || !messages.some(hasOwnSignatures)) return [];
  return elementsIn(bytes, findMembers(bytes, MESSAGES).spans.get("messages")).flatMap((message, index) => {
    const given: unknown = messages[index];
    if (!hasOwnSignatures(given)) return [];
    const { spans } = findMembers(bytes, TOOL_CALLS, message.start);
    return elementsIn(bytes, spans.get("tool_calls")).flatMap((call, index) =>
      withoutOwnMembers(bytes, call, given.tool_calls[index]),
    );
  });
}

/** @param call the tool call's bytes, and the parsed call */
function withoutOwnMembers(bytes: Uint8Array, { start }: Span, call: unknown): readonly Edit[] {
  const own = ownMembers(call);
  const extra = own.length === 0 ? undefined : findMembers(bytes, EXTRA, start).spans.get("extra_content");
  if (!extra) return [];
  const isAll = Object.keys(Object(field(call, "extra_content"))).length === own.length;
  if (isAll) return removals(bytes, [whole(extra)]);
  const { spans } = findMembers(bytes, new MemberNames(own), extra.start);
  return removals(bytes, [...spans.values()].map(whole));
}

function whole({ nameStart, end }: MemberSpan): Span {
  return { start: nameStart, end };
}

function elementsIn(bytes: Uint8Array, span: Span | undefined): readonly Span[] {
  return span ? elementsOf(bytes, span) : [];
}

function hasOwnSignatures(message: unknown): message is { readonly tool_calls: readonly unknown[] } {
  const calls = field(message, "tool_calls");
  return Array.isArray(calls) && calls.some((call) => ownMembers(call).length > 0);
}

/** The names of the members in a tool call's `extra_content` that Gatehouse wrote. */
function ownMembers(call: unknown): readonly string[] {
  const extra = field(call, "extra_content");
  if (!isMembers(extra)) return [];
  return Object.entries(extra).flatMap(([name, member]) => {
    const signature = field(member, "thought_signature");
    const isOwn = name === GATEHOUSE || (typeof signature === "string" && isPacked(signature));
    return isOwn ? [name] : [];
  });
}
