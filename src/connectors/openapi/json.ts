/** A JSON object as it was parsed: nothing is known of its values. Its own properties are the only ones. */
export type JsonMap = Readonly<Record<string, unknown>>;

export function isMap(value: unknown): value is JsonMap {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A field of an object that came from outside: never what it inherits, such as `constructor`. */
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

/** Undefined for what is no string, and for the empty one. */
export function ownText(map: JsonMap, key: string): string | undefined {
  const value = own(map, key);
  return typeof value === "string" && value !== "" ? value : undefined;
}

export function ownBoolean(map: JsonMap, key: string): boolean | undefined {
  const value = own(map, key);
  return typeof value === "boolean" ? value : undefined;
}
