/**
 * Memory scopes (contract, section 1): slash-separated paths that locate documents and limit what an agent sees. A
 * path has exactly one spelling. Any other form is refused on input, so nothing later has to normalise, and `a/../b`,
 * `a//b`, `A` or look-alikes from other alphabets never reach a comparison.
 */
export const MEMORY_SCOPE = "^(/|[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*){0,15})$";
export const MEMORY_SCOPE_LENGTH = 1024;
/** Covers the whole workspace. Documents in it are visible only to callers that see everything. */
export const ROOT_SCOPE = "/";

/** What is visible: these paths and everything below them. Empty: nothing. */
export type Boundary = readonly string[];

export const EVERYTHING: Boundary = [ROOT_SCOPE];

/** Whether `scope` is `path` or an ancestor of it. `supportx` is not below `support`. */
export function covers(scope: string, path: string): boolean {
  return scope === ROOT_SCOPE || path === scope || path.startsWith(`${scope}/`);
}

/**
 * The paths below a path, as a range in byte order, both ends excluded: `0` follows `/`, so exactly the paths below
 * are in between.
 */
export function rangeBelow(path: string): readonly [from: string, to: string] {
  return [`${path}/`, `${path}0`];
}

export function isInside(boundary: Boundary, path: string): boolean {
  return boundary.some((scope) => covers(scope, path));
}

/** The part of `wanted` that is inside `boundary`: a request can only narrow it. No returned path covers another. */
export function narrow(boundary: Boundary, wanted: Boundary): Boundary {
  const both: string[] = [];
  for (const held of boundary) {
    for (const asked of wanted) {
      if (covers(held, asked)) both.push(asked);
      else if (covers(asked, held)) both.push(held);
    }
  }
  return simplify(both);
}

/** The same boundary without paths that another path covers. */
export function simplify(boundary: Boundary): Boundary {
  const paths = [...new Set(boundary)];
  return paths.filter((path) => !paths.some((other) => other !== path && covers(other, path)));
}
