/** Whether a text matches a pattern. */
export type Glob = (text: string) => boolean;

/**
 * What a pattern is made of: `*` stands for any run of characters (none and `/` included), `?` for exactly one, and everything
 * else for itself. Brackets, braces, a leading `!`, spaces and commas mean something in other glob dialects or in lists and
 * nothing here, so a pattern that has one is not a glob: taken literally, it would silently forbid nothing. A name that holds
 * such a character is matched by `?` in its place.
 */
export const GLOB = "^[A-Za-z0-9_.:/@+*?-]+$";
/** What a 422 says of a pattern that is not a glob. */
export const GLOB_HINT =
  "must be a pattern of letters, digits, _ . : / @ + - with * for any characters and ? for exactly one";
const FORM = new RegExp(GLOB);

const CACHE_LIMIT = 10_000;
const cache = new Map<string, Glob | null>();

export function isGlob(pattern: string): boolean {
  return FORM.test(pattern);
}

/**
 * For lists that grant something: whether one of the patterns matches, in the exact spelling. A pattern that is not a glob
 * grants nothing.
 */
export function matchesAny(patterns: readonly string[], text: string): boolean {
  for (const pattern of patterns) if (compiled(pattern)?.(text)) return true;
  return false;
}

/**
 * For lists that deny: whether one of the patterns matches a model, `<provider>/<model>`. Doubt denies:
 *
 * - upper and lower case are the same;
 * - a pattern without `/` is also held against the model's own name: `gpt-*` matches `openai/gpt-5`;
 * - a pattern that is not a glob, as older versions stored them, matches every name.
 */
export function restrictsModel(patterns: readonly string[], model: string): boolean {
  return patterns.length > 0 && restricts(patterns, model, "/");
}

/**
 * For lists that demand an approval: whether one of the patterns matches a tool, `<connector>.<tool>`. Doubt demands it, as
 * `restrictsModel` has it; the name that the tool has over MCP, `<connector>__<tool>`, counts too.
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
 * True when every text that `inner` matches is matched by one of `outer`. Sufficient, not necessary: a `*` of the inner
 * pattern is taken as an ordinary character, which only a `*` of the outer one can cover, and a `?` as one that a `?` covers too.
 */
export function covers(outer: readonly string[], inner: string): boolean {
  return matchesAny(outer, inner);
}

/** Null for a pattern that is not a glob. */
function compiled(pattern: string): Glob | null {
  const known = cache.get(pattern);
  if (known !== undefined) return known;
  const made = isGlob(pattern) ? compile(pattern) : null;
  if (cache.size >= CACHE_LIMIT) cache.clear();
  cache.set(pattern, made);
  return made;
}

/** No backtracking expression is built: the parts between stars are each found once, from left to right. */
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

/** The first place from `from` on where the part fits before `end`; -1 if there is none. */
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
    // A star in the text is another pattern's (`covers`), and stands for more than one character.
    if (found === undefined || (wanted === "?" ? found === "*" : found !== wanted)) return false;
  }
  return true;
}
