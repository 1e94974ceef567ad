const CODING = /^\s*(?<coding>[^\s;]+)\s*(?:;\s*q=(?<weight>[\d.]+)\s*)?$/i;
const ENTITY_TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/**
 * Whether a client accepts gzip, by its `Accept-Encoding` (RFC 9110, section 12.5.3): it names gzip with a weight
 * above 0, or does not name it but accepts `*`. A client without the header gets uncompressed content.
 */
export function takesGzip(acceptEncoding: string | null): boolean {
  const weights = new Map<string, number>();
  for (const element of (acceptEncoding ?? "").split(",")) {
    const { coding, weight = "1" } = CODING.exec(element)?.groups ?? {};
    if (coding !== undefined) weights.set(coding.toLowerCase(), Number(weight));
  }
  // RFC 9110, section 8.4.1.3: x-gzip is an older name for gzip.
  return (weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0) > 0;
}

/**
 * Whether a client already has the content, by its `If-None-Match` (RFC 9110, section 13.1.2): the list contains the
 * tag, strong or weak, or is `*`. `etag` is a strong tag.
 */
export function isKnown(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === "*") return true;
  return [...ifNoneMatch.matchAll(ENTITY_TAG)].some(([, tag]) => tag === etag);
}
