/** Matches text against a pattern in which `*` stands for any run of characters, none and `/` included. */
export type Glob = (text: string) => boolean;

const CACHE_LIMIT = 10_000;
const cache = new Map<string, Glob>();

/** Compiles one pattern. Linear in the text for any pattern: no backtracking expression is built. */
export function glob(pattern: string): Glob {
  const known = cache.get(pattern);
  if (known) return known;
  const compiled = compile(pattern);
  if (cache.size >= CACHE_LIMIT) cache.clear();
  cache.set(pattern, compiled);
  return compiled;
}

export function matchesAny(patterns: readonly string[], text: string): boolean {
  for (const pattern of patterns) if (glob(pattern)(text)) return true;
  return false;
}

/**
 * True when every text that `inner` matches is matched by one of `outer`. Sufficient, not necessary: a `*` of the inner
 * pattern is taken as an ordinary character, which only a `*` of the outer one can cover.
 */
export function covers(outer: readonly string[], inner: string): boolean {
  return matchesAny(outer, inner);
}

function compile(pattern: string): Glob {
  if (/^\*+$/.test(pattern)) return () => true;
  const parts = pattern.split("*");
  const first = parts[0] ?? "";
  if (parts.length === 1) return (text) => text === first;
  const last = parts[parts.length - 1] ?? "";
  const middle = parts.slice(1, -1).filter((part) => part !== "");
  return (text) => {
    if (text.length < first.length + last.length) return false;
    if (!text.startsWith(first) || !text.endsWith(last)) return false;
    const end = text.length - last.length;
    let at = first.length;
    for (const part of middle) {
      const found = text.indexOf(part, at);
      if (found < 0 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  };
}
