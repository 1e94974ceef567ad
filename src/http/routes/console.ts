import { Elysia } from "elysia";
import type { Ids } from "../../base/ids.ts";
import { type FileRequest, madeOnce, type PublicFiles } from "../answer/public-files.ts";
import { loadAssets } from "../console/assets.ts";

/**
 * The console: one page at every address below `/console`, and its files. They contain no workspace data, so anyone
 * may load them. The page gets all its data over REST.
 */
export function consoleRoutes({ ids }: { readonly ids: Ids }, served: PublicFiles) {
  const load = madeOnce(loadAssets);
  const page = async (asked: FileRequest) => served.answer(asked, (await load()).page);

  return new Elysia({ detail: { hide: true } })
    .get("/console", ({ request, server }) => page({ request, server }))
    .get("/console/assets/:name", async ({ request, server, params: { name } }) => {
      const file = (await load()).files.get(name);
      if (file) return served.answer({ request, server }, file);
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
    .get("/console/*", ({ request, server }) => page({ request, server }));
}
