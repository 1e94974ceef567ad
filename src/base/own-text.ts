/**
 * Copies a string that was cut from a longer one. The engine keeps the whole text in memory as long as any slice of
 * it is used: 4,000 characters of a 16 MiB message keep all 16 MiB.
 */
export function ownText(text: string): string {
  return ownJson(text);
}

/** Copies every string in a plain JSON value. */
export function ownJson<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}
