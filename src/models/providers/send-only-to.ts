/**
 * A `fetch` that sends requests only below a provider's URL, and never follows a redirect away from it. Packages send
 * more requests than they are asked to: Vertex AI's, for example, would download every address in a tool's result.
 * @param query appended to each request's URL
 */
export function sendOnlyTo(baseUrl: string, query: string, inner: typeof fetch): typeof fetch {
  const base = new URL(baseUrl);
  const path = base.pathname.endsWith("/") ? base.pathname : `${base.pathname}/`;
  const limited = async (
    input: string | URL | Request,
    init?: RequestInit | BunFetchRequestInit,
  ): Promise<Response> => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.origin !== base.origin || !url.pathname.startsWith(path)) {
      throw new Error("The request goes to an address outside the configured provider.");
    }
    for (const [name, value] of new URLSearchParams(query)) url.searchParams.set(name, value);
    return inner(url, { ...init, redirect: "error" });
  };
  return Object.assign(limited, { preconnect: fetch.preconnect });
}
