import { amazonNames } from "./amazon-names.ts";

/** Whether a string matches a pattern. */
export type Glob = (text: string) => boolean;

/**
 * The characters of a pattern: `*` matches any run of characters (even none, and `/`), `?` exactly one, and any other
 * character itself. Brackets, braces, a leading `!`, spaces and commas have a meaning in other glob dialects or in
 * lists, but not here. A pattern that contains one of them is refused, because it would silently match nothing if
 * taken literally. Use `?` to match such a character in a name.
 */
const GLOB = "^[A-Za-z0-9_.:/@+*?-]+$";
/** The 422 message for a pattern that is not a glob. */
export const GLOB_HINT =
  "must be a pattern of letters, digits, _ . : / @ + - with * for any characters and ? for exactly one";
const FORM = new RegExp(GLOB);

const CACHE_LIMIT = 10_000;
const cache = new Map<string, Glob | null>();

export function isGlob(pattern: string): boolean {
  return FORM.test(pattern);
}

/**
 * For lists that grant: whether one of the patterns matches, case-sensitively. A pattern that is not a glob grants
 * nothing.
 */
export function matchesAny(patterns: readonly string[], text: string): boolean {
  for (const pattern of patterns) if (compiled(pattern)?.(text)) return true;
  return false;
}

/**
 * For lists that deny: whether one of the patterns matches a model, `<provider>/<model>`. If in doubt, the model is
 * denied:
 *
 * - case is ignored;
 * - a pattern without `/` is also compared to the model's own name: `gpt-*` matches `openai/gpt-5`;
 * - the region of Amazon's inference profiles is also ignored: `aws/anthropic.*` matches `aws/us.anthropic.claude-5`;
 * - a pattern that is not a glob (older versions stored such patterns) matches every name.
 */
export function restrictsModel(patterns: readonly string[], model: string): boolean {
  return patterns.length > 0 && amazonNames(model).some((name) => restricts(patterns, name, "/"));
}

/**
 * For lists that require an approval: whether one of the patterns matches a tool, `<connector>.<tool>`. If in doubt,
 * approval is required, as in `restrictsModel`. The tool's name over MCP, `<connector>__<tool>`, matches too.
 */
export function restrictsTool(patterns: readonly string[], tool: string): boolean {
  if (patterns.length === 0) return false;
  return restricts(patterns, tool, ".") || restricts(patterns, tool.replace(".", "__"), "__");
}

function restricts(patterns: readonly string[], name: string, separator: string): boolean {
  const folded = name.toLowerCase();
  const own = folded.slice(folded.indexOf(separator) + separator.length);
  return patterns.some((pattern) => {
    const matches = compiled(pattern.toLowerCase());
    if (matches === null || matches(folded)) return true;
    return !pattern.includes(separator) && matches(own);
  });
}

/**
 * Whether every string that `inner` matches is also matched by one of `outer`. The check is sufficient but not
 * necessary: a `*` in `inner` counts as a character that only a `*` in `outer` covers, and a `?` as one that a `?`
 * covers too.
 */
export function covers(outer: readonly string[], inner: string): boolean {
  return matchesAny(outer, inner);
}

/** Null if the pattern is not a glob. */
function compiled(pattern: string): Glob | null {
  const known = cache.get(pattern);
  if (known !== undefined) return known;
  const made = isGlob(pattern) ? compile(pattern) : null;
  if (cache.size >= CACHE_LIMIT) cache.clear();
  cache.set(pattern, made);
  return made;
}

/**
 * Does not use a regular expression, which could backtrack: each part between stars is searched once, from left to
 * right.
 */
function compile(pattern: string): Glob {
  if (/^\*+$/.test(pattern)) return () => true;
  const parts = pattern.split("*");
  const first = parts[0] ?? "";
  if (parts.length === 1) return (text) => text.length === first.length && fits(first, text, 0);
  const last = parts[parts.length - 1] ?? "";
  const middle = parts.slice(1, -1).filter((part) => part !== "");
  return (text) => {
    const end = text.length - last.length;
    if (end < first.length || !fits(first, text, 0) || !fits(last, text, end)) return false;
    let at = first.length;
    for (const part of middle) {
      const found = find(part, text, at, end);
      if (found < 0) return false;
      at = found + part.length;
    }
    return true;
  };
}

/** The first position at or after `from` where the part matches and ends by `end`; -1 if there is none. */
function find(part: string, text: string, from: number, end: number): number {
  if (!part.includes("?")) {
    const found = text.indexOf(part, from);
    return found + part.length > end ? -1 : found;
  }
  for (let at = from; at + part.length <= end; at++) if (fits(part, text, at)) return at;
  return -1;
}

function fits(part: string, text: string, at: number): boolean {
  if (!part.includes("?")) return text.startsWith(part, at);
  for (let index = 0; index < part.length; index++) {
    const wanted = part[index];
    const found = text[at + index];
    // A star in the text comes from another pattern (`covers`) and represents any number of characters.
    if (found === undefined || (wanted === "?" ? found === "*" : found !== wanted)) return false;
  }
  return true;
}
