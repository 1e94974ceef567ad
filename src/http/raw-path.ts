import type { BunRequest } from "bun";

/** Segments of a path that are looked at one by one: more than any route has. What lies deeper is not found. */
const DEEPEST = 12;

type Handle = (request: Request) => Promise<Response> | Response;
type Routes = Record<string, (request: BunRequest) => Promise<Response> | Response>;

/**
 * Routes for Bun's own router that catch every path which no endpoint's route takes as it was sent. Bun matches its routes
 * against the path's bytes, but a request's `url` is normalised (WHATWG URL): `/x/%2e%2e/v1/tokens` and `/v1\tokens` read
 * `/v1/tokens` there, where a proxy's rules for paths have seen something else. So a path is passed on only if nothing was
 * normalised; an encoded slash or dot inside of a segment stays what it is.
 *
 * @param found answers a path that is as it was sent: one with a slash at its end, or with another method
 * @param refused answers any other
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
    // The most exact pattern wins: only a single slash at the end is left for the last one, or what is too deep.
    routes[pattern] = asSent([]);
    routes[`${pattern}//*`] = refused;
    routes[`${pattern}/*`] = depth < DEEPEST ? asSent([""]) : refused;
  }
  return routes;
}

/** Whether the normalised path of a URL has exactly these segments, which are decoded. */
function isPath(url: string, segments: readonly string[]): boolean {
  const given = pathOf(url).slice(1).split("/");
  return (
    given.length === segments.length &&
    given.every((segment, at) => decoded(segment) === segments[at] && !isDots(decoded(segment)))
  );
}

/** Decoded: with a Host header that no URL can have, Bun leaves encoded dots as they came, and Elysia resolves them. */
function isDots(segment: string | undefined): boolean {
  return segment === "." || segment === "..";
}

/** As Bun decodes a parameter. Undefined for what is no UTF-8: such a path is nobody's. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** Not with `URL`, which refuses what a client may have put into its Host header: then Bun's `url` is the path as it was sent. */
export function pathOf(url: string): string {
  return /^(?:[^:/?#]+:\/\/[^/?#]*)?([^?#]*)/.exec(url)?.[1] ?? "";
}
