import { amazonNames } from "./amazon-names.ts";
import { GlobList } from "./globs/glob-list.ts";
import { WeakCache } from "./weak-cache.ts";

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
/** A step of a list (see `stepsOf`) takes as long as measuring this number of bytes. */
const STEP_COST = 16;

export function isGlob(pattern: string): boolean {
  return FORM.test(pattern);
}

/**
 * For lists that grant: whether one of the patterns matches, case-sensitively. A pattern that is not a glob grants
 * nothing. Compiled lists are kept, so a list MUST NOT be changed after its first use; this holds for all lists below.
 */
export function matchesAny(patterns: readonly string[], text: string): boolean {
  return patterns.length > 0 && grantOf(patterns).matches(text);
}

/** How long `matchesAny` takes for one text, in bytes that are measured in the same time (see `Arrival`). */
export function grantCost(patterns: readonly string[]): number {
  return grantOf(patterns).steps * STEP_COST;
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

/** How long `restrictsTool` takes for one tool, in the unit of `grantCost`. */
export function restrictionCost(patterns: readonly string[]): number {
  const { whole, own } = restrictionOf(patterns, ".");
  return 2 * (whole.steps + own.steps) * STEP_COST;
}

/**
 * Whether every string that `inner` matches is also matched by one of `outer`. The check is sufficient but not
 * necessary: a `*` in `inner` counts as a character that only a `*` in `outer` covers, and a `?` as one that a `?`
 * covers too.
 */
export function covers(outer: readonly string[], inner: string): boolean {
  return matchesAny(outer, inner);
}

type Separator = "/" | "." | "__";

/** A list that denies, in lower case. */
interface Restriction {
  /** Patterns for whole names. */
  readonly whole: GlobList;
  /** Patterns without the separator, which are also compared to the own name. */
  readonly own: GlobList;
}

/** What was derived from a list of patterns. */
interface DerivedLists {
  bytes: number;
  grant: GlobList | null;
  /** `Restriction.whole`, which is the same for all separators. */
  whole: GlobList | null;
  readonly restrictions: Partial<Record<Separator, Restriction>>;
}

/** Bytes of memory for all that was derived from lists, whoever wrote them: see `access/list-memory.ts`. */
const MOST_BYTES = 24 * 1024 * 1024;
/** Bytes of a list's entry. */
const ENTRY = 256;
const derived = new WeakCache<readonly string[], DerivedLists>(MOST_BYTES);

function listsOf(patterns: readonly string[]): DerivedLists {
  const known = derived.get(patterns);
  if (known) return known;
  const made: DerivedLists = { bytes: ENTRY, grant: null, whole: null, restrictions: {} };
  derived.add(patterns, made);
  return made;
}

function listOf(lists: DerivedLists, patterns: readonly string[]): GlobList {
  return new GlobList(patterns, (bytes) => derived.grow(lists, bytes));
}

function grantOf(patterns: readonly string[]): GlobList {
  const lists = listsOf(patterns);
  lists.grant ??= listOf(lists, patterns.filter(isGlob));
  return lists.grant;
}

function restrictionOf(patterns: readonly string[], separator: Separator): Restriction {
  const lists = listsOf(patterns);
  const known = lists.restrictions[separator];
  if (known) return known;
  const folded = patterns.every(isGlob) ? patterns.map((pattern) => pattern.toLowerCase()) : ["*"];
  lists.whole ??= listOf(lists, folded);
  const own = listOf(
    lists,
    folded.filter((pattern) => !pattern.includes(separator)),
  );
  const made = { whole: lists.whole, own };
  lists.restrictions[separator] = made;
  return made;
}

function restricts(patterns: readonly string[], name: string, separator: Separator): boolean {
  const { whole, own } = restrictionOf(patterns, separator);
  const folded = name.toLowerCase();
  return whole.matches(folded) || own.matches(folded.slice(folded.indexOf(separator) + separator.length));
}
