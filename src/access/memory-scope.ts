/**
 * Memory scopes (contract, section 1): slash paths that say where a document lies and how far an agent sees. A path has one
 * spelling: what is not of this form is refused at the door, so that nothing behind it has to normalise, and `a/../b`,
 * `a//b`, `A` or a look-alike of another alphabet never meets a comparison.
 */
export const MEMORY_SCOPE = "^(/|[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*){0,15})$";
export const MEMORY_SCOPE_LENGTH = 1024;
/** Covers the workspace. A document that lies here is seen by those alone who see everything. */
export const ROOT_SCOPE = "/";

/** What may be seen: these paths and everything below them. Empty: nothing. */
export type Boundary = readonly string[];

export const EVERYTHING: Boundary = [ROOT_SCOPE];

/** Whether `scope` is `path` or lies above it. `supportx` is not below `support`. */
export function covers(scope: string, path: string): boolean {
  return scope === ROOT_SCOPE || path === scope || path.startsWith(`${scope}/`);
}

/**
 * What lies below a path, as a range of paths in the order of their bytes, both ends left out: `0` follows `/`, so that
 * between the two is what is below, and nothing else.
 */
export function rangeBelow(path: string): readonly [from: string, to: string] {
  return [`${path}/`, `${path}0`];
}

export function isInside(boundary: Boundary, path: string): boolean {
  return boundary.some((scope) => covers(scope, path));
}

/** The part of `wanted` that lies inside `boundary`: a wish can only narrow. No path of the answer covers another. */
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

/** The same boundary without paths that another one covers. */
export function simplify(boundary: Boundary): Boundary {
  const paths = [...new Set(boundary)];
  return paths.filter((path) => !paths.some((other) => other !== path && covers(other, path)));
}
