import { Elysia } from "elysia";
import type { Ids } from "../../base/ids.ts";
import { type ConsoleAsset, type ConsoleAssets, loadAssets } from "../console/assets.ts";
import { isKnown, takesGzip } from "../console/negotiate.ts";

/**
 * The console: one page at every address below `/console`, and its files. They hold nothing of any workspace, so that
 * anybody may load them; whatever they show, they ask REST for.
 */
export function consoleRoutes({ ids }: { readonly ids: Ids }) {
  // Made at the first question. One that failed is asked again at the next.
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
          // A page that was built anew may name it in a moment.
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
