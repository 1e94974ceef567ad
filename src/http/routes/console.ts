import { Elysia } from "elysia";
import type { Ids } from "../../base/ids.ts";
import { type ConsoleAsset, type ConsoleAssets, loadAssets } from "../console/assets.ts";
import { isKnown, takesGzip } from "../console/negotiate.ts";

/**
 * The console: one page at every address below `/console`, and its files. They contain no workspace data, so anyone
 * may load them. The page gets all its data over REST.
 */
export function consoleRoutes({ ids }: { readonly ids: Ids }) {
  // Loaded on the first request. After a failure, the next request tries again.
  let loading: Promise<ConsoleAssets> | null = null;
  function load(): Promise<ConsoleAssets> {
    loading ??= loadAssets().catch((error: unknown) => {
      loading = null;
      throw error;
    });
    return loading;
  }
  const page = async ({ request }: { readonly request: Request }) =>
    answer(request, (await load()).page, ids("req"));

  return new Elysia({ detail: { hide: true } })
    .get("/console", page)
    .get("/console/assets/:name", async ({ request, params: { name } }) => {
      const file = (await load()).files.get(name);
      if (file) return answer(request, file, ids("req"));
      return new Response("There is no such file.\n", {
        status: 404,
        headers: {
          "gatehouse-request-id": ids("req"),
          "content-type": "text/plain; charset=utf-8",
          // A rebuilt page may need this file soon.
          "cache-control": "no-store",
        },
      });
    })
    .get("/console/*", page);
}

function answer(request: Request, asset: ConsoleAsset, requestId: string): Response {
  const isPacked = takesGzip(request.headers.get("accept-encoding"));
  const etag = isPacked ? asset.gzipTag : asset.plainTag;
  const headers: Record<string, string> = { ...asset.headers, etag, "gatehouse-request-id": requestId };
  if (isKnown(request.headers.get("if-none-match"), etag))
    return new Response(null, { status: 304, headers });
  if (!isPacked) return new Response(asset.plain, { headers });
  return new Response(asset.gzip, { headers: { ...headers, "content-encoding": "gzip" } });
}
