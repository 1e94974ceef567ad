/** Methods that some route takes for this path, sorted; for the `Allow` of 405 (RFC 9110, section 15.5.6). */
export function allowedMethods(
  routes: readonly { readonly method: string; readonly path: string }[],
  pathname: string,
): string[] {
  const segments = split(pathname);
  const methods = routes.filter((route) => matches(split(route.path), segments)).map((route) => route.method);
  // Whatever answers GET answers HEAD (RFC 9110, section 9.3.2), and has no route of its own.
  return [...new Set(methods.includes("GET") ? [...methods, "HEAD"] : methods)].sort();
}

/** As the router sees a path: one slash at its end counts for nothing, an empty segment for something. */
function split(path: string): string[] {
  return path.replace(/(?<=.)\/$/, "").split("/");
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  // A `*` at the end stands for all that follows.
  if (pattern.at(-1) === "*") return startsWith(pattern.slice(0, -1), segments);
  return pattern.length === segments.length && startsWith(pattern, segments);
}

function startsWith(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.every((part, index) =>
    part.startsWith(":") ? segments[index] !== "" : part === segments[index],
  );
}
