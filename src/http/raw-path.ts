import type { BunRequest } from "bun";

/**
 * The maximum number of path segments compared one by one, which is more than any route has. Deeper paths are not
 * found.
 */
const DEEPEST = 12;

type Handle = (request: Request) => Promise<Response> | Response;
type Routes = Record<string, (request: BunRequest) => Promise<Response> | Response>;

/**
 * Routes for Bun's own router that catch every path not matched, as sent, by an endpoint's route. Bun matches routes
 * against the raw path, but a request's `url` is normalised (WHATWG URL): `/x/%2e%2e/v1/tokens` and `/v1\tokens`
 * become `/v1/tokens`, although a proxy's path rules saw something else. So a path is passed on only if nothing was
 * normalised. An encoded slash or dot inside a segment stays encoded.
 *
 * @param found answers a path that is unchanged, such as one with a trailing slash or another method
 * @param refused answers any other path
 */
export function catchPaths(found: Handle, refused: Handle): Routes {
  const routes: Routes = {
    "/*": (request) => (pathOf(request.url) === "/" ? found(request) : refused(request)),
  };
  for (let depth = 1; depth <= DEEPEST; depth++) {
    const names = Array.from({ length: depth }, (_, at) => `s${at}`);
    const pattern = `/${names.map((name) => `:${name}`).join("/")}`;
    const segments = ({ params }: BunRequest): string[] =>
      names.map((name) => Reflect.get(params, name) as string);
    const asSent = (end: readonly string[]) => (request: BunRequest) =>
      isPath(request.url, [...segments(request), ...end]) ? found(request) : refused(request);
    // The most specific pattern wins. The last one matches only a single trailing slash, or too deep a path.
    routes[pattern] = asSent([]);
    routes[`${pattern}//*`] = refused;
    routes[`${pattern}/*`] = depth < DEEPEST ? asSent([""]) : refused;
  }
  return routes;
}

/** Whether the normalised path of a URL has exactly these decoded segments. */
function isPath(url: string, segments: readonly string[]): boolean {
  const given = pathOf(url).slice(1).split("/");
  return (
    given.length === segments.length &&
    given.every((segment, at) => decoded(segment) === segments[at] && !isDots(decoded(segment)))
  );
}

/**
 * Compared after decoding: if the Host header is invalid in a URL, Bun leaves encoded dots unchanged and Elysia
 * resolves them.
 */
function isDots(segment: string | undefined): boolean {
  return segment === "." || segment === "..";
}

/** Decodes as Bun does for parameters. Undefined if it is not UTF-8, which matches no route. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/**
 * Not with `URL`, which rejects an invalid Host header from the client. Bun's `url` then contains the path as sent.
 */
export function pathOf(url: string): string {
  return /^(?:[^:/?#]+:\/\/[^/?#]*)?([^?#]*)/.exec(url)?.[1] ?? "";
}
