import { type PublicFile, publicFile } from "../answer/public-files.ts";
import { loadConsole } from "./bundle.ts";

export interface ConsoleAssets {
  readonly page: PublicFile;
  /** Files by name. */
  readonly files: ReadonlyMap<string, PublicFile>;
}

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
};

/**
 * For the page and all its files: nothing loads from another host, no inline code runs, text never becomes markup,
 * and no other page can frame it. Styles are set from scripts, which `style-src 'self'` allows (CSP 3, section 8.3).
 */
const SECURITY: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};
/** A file's name changes with its content. The page's address does not, so it is revalidated every time. */
const FOR_EVER = "public, max-age=31536000, immutable";

/** @throws Error if the console cannot be built */
export async function loadAssets(): Promise<ConsoleAssets> {
  const { page, files } = await loadConsole();
  const names = files.map(({ name }) => name);
  const served = files.map(async ({ name, bytes }) => {
    const isText = /\.(js|css)$/.test(name);
    return [name, await asset(name, isText ? withAddresses(bytes, names) : bytes, FOR_EVER)] as const;
  });
  return {
    page: await asset("index.html", withAddresses(page.bytes, names), "no-cache"),
    files: new Map(await Promise.all(served)),
  };
}

/**
 * Replaces references between the files with the addresses at which they are served. The bundler writes `"./name"`
 * when run from source and `"/name"` in the compiled program. The page is served at addresses of any depth, so
 * neither would work.
 */
function withAddresses(bytes: Uint8Array, names: readonly string[]): Uint8Array<ArrayBuffer> {
  let text = new TextDecoder().decode(bytes);
  for (const name of names) {
    for (const written of [`"./${name}"`, `"/${name}"`]) {
      text = text.replaceAll(written, `"/console/assets/${name}"`);
    }
  }
  return new TextEncoder().encode(text);
}

function asset(name: string, bytes: Uint8Array<ArrayBuffer>, caching: string): Promise<PublicFile> {
  const type = TYPES[name.slice(name.lastIndexOf(".") + 1)];
  if (type === undefined) throw new Error(`the console's file ${name} has an unknown type`);
  return publicFile(bytes, { ...SECURITY, "content-type": type, "cache-control": caching });
}
