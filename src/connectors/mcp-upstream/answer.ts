import type { Result } from "@modelcontextprotocol/sdk/types.js";
import { ownText } from "../../base/own-text.ts";
import { ConnectorError, type ContentBlock, type ToolAnswer } from "../source.ts";
import type { UpstreamParts } from "./parts.ts";
import { firstOf, isObject } from "./shape.ts";

/**
 * Maximum number of characters of one answer, over all of its content. Applies separately to its structured content
 * as JSON.
 */
const ANSWER_LIMIT = 1_000_000;
const MOST_BLOCKS = 1_000;

/**
 * Masks an upstream's result of `tools/call` (specification 2025-11-25, `CallToolResult`), and cuts it to the limits.
 * @throws ConnectorError `invalid_answer`
 */
export function toolAnswer(result: Result, parts: Pick<UpstreamParts, "name" | "mask">): ToolAnswer {
  const { content, structuredContent, isError } = result;
  if (content === undefined && structuredContent === undefined)
    throw invalid("neither content nor structuredContent");
  if (content !== undefined && !isContent(content))
    throw invalid("content that is not a list of content blocks");
  if (structuredContent !== undefined && !isObject(structuredContent)) {
    throw invalid("structuredContent that is not an object");
  }
  const failed = isError === true ? { isError: true } : {};
  // Masked before it is cut: the mask would not find half of a secret.
  const blocks = cutBlocks(parts.mask.json(content ?? []));
  if (structuredContent === undefined) return { content: blocks, ...failed };
  const structured = parts.mask.json(structuredContent);
  const length = JSON.stringify(structured).length;
  if (length > ANSWER_LIMIT) {
    const text = `The answer's structured content is too large: ${length} characters. The limit is ${ANSWER_LIMIT}.`;
    return { content: [{ type: "text", text }], isError: true };
  }
  return { content: blocks, structuredContent: structured, ...failed };

  function invalid(what: string): ConnectorError {
    return new ConnectorError("invalid_answer", `The connector ${parts.name} answered a call with ${what}.`);
  }
}

function isContent(value: unknown): value is readonly ContentBlock[] {
  return Array.isArray(value) && value.every((block) => isObject(block) && typeof block.type === "string");
}

/** Cuts text at the limit. Other blocks are useless in part, so a sentence replaces them. */
function cutBlocks(blocks: readonly ContentBlock[]): readonly ContentBlock[] {
  const taken: ContentBlock[] = [];
  let left = ANSWER_LIMIT;
  for (const block of blocks.slice(0, MOST_BLOCKS)) {
    const text = block.type === "text" && typeof block.text === "string" ? block.text : undefined;
    const length = text === undefined ? JSON.stringify(block).length : text.length;
    if (length <= left) {
      taken.push(block);
      left -= length;
    } else if (text === undefined) {
      taken.push(note(`omitted: ${what(block)} of ${length} characters`));
    } else {
      const kept = firstOf(text, left);
      if (kept !== "") taken.push({ ...block, text: ownText(kept) });
      taken.push(note(`cut: the first ${kept.length} of ${length} characters`));
      left = 0;
    }
  }
  const more = blocks.length - MOST_BLOCKS;
  if (more > 0) taken.push(note(`omitted: ${more} more blocks`));
  return taken;
}

function note(text: string): ContentBlock {
  return { type: "text", text: `[${text}]` };
}

function what({ type, mimeType }: ContentBlock): string {
  const media = typeof mimeType === "string" ? ` (${firstOf(mimeType, 100)})` : "";
  return `${firstOf(type, 100)}${media}`;
}
