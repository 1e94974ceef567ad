/**
 * The Gatehouse instances that a request has passed through, oldest first, each by its instance id. Like `CDN-Loop`
 * (RFC 8586) for CDNs.
 */
export type Via = readonly string[];

/** The header that lists them, separated by commas. */
export const VIA_HEADER = "gatehouse-via";
/**
 * The same in `_meta` of an MCP request (an array), which programs and proxies between two Gatehouse instances pass
 * on.
 */
export const VIA_META = "gatehouse/via";
/**
 * In `_meta` of a tool that one Gatehouse offers to another: the Gatehouse instances that a call to it passes
 * through, nearest first.
 */
export const PATH_META = "gatehouse/path";

/**
 * Maximum number of entries; older ones are dropped. A request that has passed through this many instances is
 * refused, so none that matters is ever dropped.
 */
export const MOST_HOPS = 16;

const NONE: Via = [];
const INSTANCE = /^[0-9a-f]{8,64}$/;

export function readVia(headers: Headers): Via {
  const text = headers.get(VIA_HEADER);
  return text === null ? NONE : instancesOf(text.split(","));
}

/** The value of this key in `_meta` of an MCP request or of a tool. */
export function readMeta(meta: unknown, key: typeof VIA_META | typeof PATH_META): Via {
  if (typeof meta !== "object" || meta === null) return NONE;
  const value: unknown = Reflect.get(meta, key);
  return Array.isArray(value) ? instancesOf(value) : NONE;
}

/** The value of the header for a request sent by the last of these instances. */
export function viaText(via: Via): string {
  return via.join(", ");
}

function instancesOf(values: readonly unknown[]): Via {
  return values
    .slice(-MOST_HOPS)
    .map((value) => (typeof value === "string" ? value.trim() : ""))
    .filter((text) => INSTANCE.test(text));
}
