import styles from "swagger-ui-dist/swagger-ui.css" with { type: "file" };
import bundle from "swagger-ui-dist/swagger-ui-bundle.js" with { type: "file" };
import license from "swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt" with { type: "file" };
import { type PublicFile, publicFile } from "../answer/public-files.ts";
import { INIT, PAGE } from "./page.ts";

/** One file of the page at `/docs`. */
export interface DocsAsset {
  /** The path it is served at. */
  readonly path: string;
  /** Its media type. */
  readonly type: string;
  /** The content. A file is embedded in the compiled program. */
  readonly body: string | Blob;
}

/**
 * For every one of `docsAssets`: nothing loads from another host and no inline code runs. Inline images
 * are allowed, because Swagger UI's stylesheet needs them.
 */
const DOCS_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

/** The API documentation as a page that works offline: Swagger UI for `/openapi.json`. */
export function docsAssets(): readonly DocsAsset[] {
  return [
    { path: "/docs", type: "text/html; charset=utf-8", body: PAGE },
    { path: "/docs/init.js", type: "text/javascript; charset=utf-8", body: INIT },
    { path: "/docs/swagger-ui.css", type: "text/css; charset=utf-8", body: Bun.file(styles) },
    { path: "/docs/swagger-ui-bundle.js", type: "text/javascript; charset=utf-8", body: Bun.file(bundle) },
    // The bundle's first line refers to this path.
    {
      path: "/docs/swagger-ui-bundle.js.LICENSE.txt",
      type: "text/plain; charset=utf-8",
      body: Bun.file(license),
    },
  ];
}

/** An asset as it is served. Its path does not change with its content, so it is revalidated every time. */
export async function docsFile({ type, body }: DocsAsset): Promise<PublicFile> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : await body.bytes();
  return publicFile(bytes, { ...DOCS_HEADERS, "content-type": type, "cache-control": "no-cache" });
}
