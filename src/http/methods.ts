/** The methods that routes accept for this path, sorted, for the `Allow` header of 405 (RFC 9110, section 15.5.6). */
export function allowedMethods(
  routes: readonly { readonly method: string; readonly path: string }[],
  pathname: string,
): string[] {
  const segments = split(pathname);
  const methods = routes.filter((route) => matches(split(route.path), segments)).map((route) => route.method);
  // Routes that answer GET also answer HEAD (RFC 9110, section 9.3.2), without their own route.
  return [...new Set(methods.includes("GET") ? [...methods, "HEAD"] : methods)].sort();
}

/** Splits a path as the router does: one trailing slash is ignored, an empty segment is not. */
function split(path: string): string[] {
  return path.replace(/(?<=.)\/$/, "").split("/");
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  // A trailing `*` matches everything that follows.
  if (pattern.at(-1) === "*") return startsWith(pattern.slice(0, -1), segments);
  return pattern.length === segments.length && startsWith(pattern, segments);
}

function startsWith(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.every((part, index) =>
    part.startsWith(":") ? segments[index] !== "" : part === segments[index],
  );
}
