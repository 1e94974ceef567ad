/**
 * The options of a request whose answer comes uncompressed. Bun decompresses brotli ahead of whoever reads it, without
 * a limit: 9 KB took 6 GB. Limits on a body's bytes would count too late.
 */
export function uncompressed(headers?: ConstructorParameters<typeof Headers>[0]): {
  readonly headers: Headers;
  readonly decompress: false;
} {
  const all = new Headers(headers);
  all.set("accept-encoding", "identity");
  return { headers: all, decompress: false };
}

/** The code of the error for a compressed answer. */
export const COMPRESSED = "CompressedAnswer";

/** Refuses an answer that is compressed although `uncompressed` asked for none. @throws Error with `COMPRESSED` */
export function requireUncompressed(response: Response): Response {
  const encoding = response.headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  if (encoding === "" || encoding === "identity") return response;
  // The body is not needed, so an error of its connection does not matter.
  response.body?.cancel().catch(() => {});
  throw Object.assign(new Error("The answer is compressed, which was not asked for."), { code: COMPRESSED });
}
