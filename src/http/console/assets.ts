import { loadConsole } from "./bundle.ts";

/** A file of the console as served. Compressed once, since every current browser accepts gzip. */
export interface ConsoleAsset {
  /** Headers for both encodings, except the entity tag. */
  readonly headers: Readonly<Record<string, string>>;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzip: Uint8Array<ArrayBuffer>;
  /** Strong entity tags. They identify bytes, so each encoding has its own (RFC 9110, section 8.8.3.3). */
  readonly plainTag: string;
  readonly gzipTag: string;
}

export interface ConsoleAssets {
  readonly page: ConsoleAsset;
  /** Files by name. */
  readonly files: ReadonlyMap<string, ConsoleAsset>;
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
  return {
    page: asset("index.html", withAddresses(page.bytes, names), "no-cache"),
    files: new Map(
      files.map(({ name, bytes }) => {
        const isText = /\.(js|css)$/.test(name);
        return [name, asset(name, isText ? withAddresses(bytes, names) : bytes, FOR_EVER)];
      }),
    ),
  };
}

/**
 * Replaces references between the files by the addresses they are served at. The bundler writes `"./name"` when run
 * from source and `"/name"` in the compiled program. The page is served at addresses of any depth, so neither would
 * work.
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

function asset(name: string, bytes: Uint8Array<ArrayBuffer>, caching: string): ConsoleAsset {
  const type = TYPES[name.slice(name.lastIndexOf(".") + 1)];
  if (type === undefined) throw new Error(`the console's file ${name} has an unknown type`);
  const hash = Bun.hash(bytes).toString(36);
  return {
    plainTag: `"${hash}"`,
    gzipTag: `"${hash}-gz"`,
    headers: {
      ...SECURITY,
      "content-type": type,
      "cache-control": caching,
      vary: "accept-encoding",
    },
    plain: bytes,
    gzip: Bun.gzipSync(bytes, { level: 9 }),
  };
}
