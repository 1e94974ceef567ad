/** A parsed JSON object with values of unknown types. Only its own properties count. */
export type JsonMap = Readonly<Record<string, unknown>>;

export function isMap(value: unknown): value is JsonMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A field of an untrusted object; ignores inherited properties such as `constructor`. */
export function own(map: JsonMap, key: string): unknown {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}

export function ownMap(map: JsonMap, key: string): JsonMap | undefined {
  const value = own(map, key);
  return isMap(value) ? value : undefined;
}

export function ownList(map: JsonMap, key: string): readonly unknown[] {
  const value = own(map, key);
  return Array.isArray(value) ? value : [];
}

/** Undefined for the empty string and for anything that is not a string. */
export function ownText(map: JsonMap, key: string): string | undefined {
  const value = own(map, key);
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function ownBoolean(map: JsonMap, key: string): boolean | undefined {
  const value = own(map, key);
  return typeof value === "boolean" ? value : undefined;
}
