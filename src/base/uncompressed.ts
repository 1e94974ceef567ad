/**
 * The request options for an uncompressed answer. Bun decompresses brotli ahead of its reader without a limit: 9 KB
 * took 6 GB. Limits on a body's bytes would apply too late.
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
  throw Object.assign(
    new Error("The answer is compressed, although the request asked for an uncompressed one."),
    { code: COMPRESSED },
  );
}
