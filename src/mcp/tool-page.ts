import { invalidField } from "../base/errors.ts";
import { PATH_META, type Via } from "../base/via.ts";
import { lengthOfView, type ToolView, toolJson } from "./tool-view.ts";

/** Maximum number of tools per page of a list. Many clients read only the first page. */
const MOST_TOOLS = 1_000;
/** Maximum characters per page: as JSON text, and parsed, as the SDK's transport needs it. */
const MOST_LENGTH = 2 * 1024 * 1024;
const MOST_PARSED_LENGTH = 1024 * 1024;
/**
 * Lists that fit on one page are kept encoded, because encoding 200 tools took 500 µs each time. The limits, in
 * bytes, for one list and for all lists.
 */
const KEPT_LENGTH = 512 * 1024;
const KEPT_BYTES = 16 * 1024 * 1024;

const ENCODER = new TextEncoder();

/** One page of a list of tools. */
export class ToolPage {
  readonly tools: readonly ToolView[];
  readonly nextCursor: string | undefined;
  /** The list, if it fits on this page. */
  readonly #whole: readonly ToolView[] | null;
  readonly #paths: ToolPaths | null;

  /** @throws Problem 422 for an invalid cursor */
  constructor(
    listed: readonly ToolView[],
    cursor: unknown,
    { isParsed, paths }: { readonly isParsed: boolean; readonly paths: ToolPaths | null },
  ) {
    const start = cursor === undefined ? 0 : startAfter(listed, decode(cursor));
    const end = endOf(listed, start, isParsed ? MOST_PARSED_LENGTH : MOST_LENGTH);
    const isWhole = start === 0 && end === listed.length;
    this.tools = isWhole ? listed : listed.slice(start, end);
    this.#whole = isWhole ? listed : null;
    this.#paths = paths;
    const last = listed[end - 1];
    this.nextCursor = end < listed.length && last ? Buffer.from(last.name).toString("base64url") : undefined;
  }

  /** The JSON array in UTF-8. */
  encoded(): Uint8Array {
    return this.#whole && !this.#paths ? encodedLists.of(this.#whole) : encode(this.tools, this.#paths);
  }

  /** The array as a parsed value. */
  parsed(): unknown {
    return JSON.parse(new TextDecoder().decode(this.encoded()));
  }
}

/**
 * Tells another Gatehouse which Gatehouse instances lie behind each tool, so that it can leave out tools that lead
 * back to it. Otherwise two instances that connect to each other would list their tools endlessly.
 */
export interface ToolPaths {
  readonly instance: string;
  readonly paths: ReadonlyMap<string, Via>;
}

function encode(tools: readonly ToolView[], paths: ToolPaths | null): Uint8Array {
  const parts = tools.map((tool) => toolJson(tool, paths ? metaOf(tool, paths) : undefined));
  return ENCODER.encode(`[${parts.join(",")}]`);
}

function metaOf({ name }: ToolView, { instance, paths }: ToolPaths): object {
  return { [PATH_META]: [instance, ...(paths.get(name) ?? [])] };
}

/** Encoded lists; the most recently added are kept. */
class EncodedLists {
  readonly #lists = new Map<readonly ToolView[], Uint8Array>();
  #bytes = 0;

  of(list: readonly ToolView[]): Uint8Array {
    const known = this.#lists.get(list);
    if (known) return known;
    const bytes = encode(list, null);
    if (bytes.length > KEPT_LENGTH) return bytes;
    this.#lists.set(list, bytes);
    this.#bytes += bytes.length;
    for (const [oldest, kept] of this.#lists) {
      if (this.#bytes <= KEPT_BYTES) break;
      this.#lists.delete(oldest);
      this.#bytes -= kept.length;
    }
    return bytes;
  }
}

const encodedLists = new EncodedLists();

function endOf(listed: readonly ToolView[], start: number, most: number): number {
  let length = 0;
  let end = start;
  for (; end < listed.length && end - start < MOST_TOOLS; end++) {
    const tool = listed[end];
    if (tool) length += lengthOfView(tool);
    // A page has at least one tool.
    if (length > most && end > start) break;
  }
  return end;
}

/** A cursor is the name of the last tool of the previous page, so tools may be added or removed between pages. */
function startAfter(listed: readonly ToolView[], name: string): number {
  const start = listed.findIndex((tool) => tool.name > name);
  return start < 0 ? listed.length : start;
}

function decode(cursor: unknown): string {
  const name = typeof cursor === "string" ? Buffer.from(cursor, "base64url").toString() : "";
  if (!/^\w{1,64}$/.test(name)) throw invalidField("/cursor", "is not a cursor of this list");
  return name;
}
