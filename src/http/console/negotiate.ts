const CODING = /^\s*(?<coding>[^\s;]+)\s*(?:;\s*q=(?<weight>[\d.]+)\s*)?$/i;
const ENTITY_TAG = /(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")/g;

/**
 * Whether a client takes gzip, by its `Accept-Encoding` (RFC 9110, section 12.5.3): where it names gzip, with a weight above
 * 0; else where it takes every coding that it does not name. Who says nothing gets what every client can read.
 */
export function takesGzip(acceptEncoding: string | null): boolean {
  const weights = new Map<string, number>();
  for (const element of (acceptEncoding ?? "").split(",")) {
    const { coding, weight = "1" } = CODING.exec(element)?.groups ?? {};
    if (coding !== undefined) weights.set(coding.toLowerCase(), Number(weight));
  }
  // RFC 9110, section 8.4.1.3: the older name says the same.
  return (weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0) > 0;
}

/**
 * Whether a client has what it asks for already, by its `If-None-Match` (RFC 9110, section 13.1.2): the tag is in the list,
 * strong or weak, or anything will do. `etag` is a strong one.
 */
export function isKnown(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === "*") return true;
  return [...ifNoneMatch.matchAll(ENTITY_TAG)].some(([, tag]) => tag === etag);
}
