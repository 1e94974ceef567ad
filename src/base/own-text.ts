/**
 * A copy of a text that was cut from a longer one. The engine keeps the whole of a text in memory for as long as any slice of it is
 * used: 4,000 characters of a message of 16 MiB hold all 16 MiB.
 */
export function ownText(text: string): string {
  return ownJson(text);
}

/** The same for every text in a value of plain JSON. */
export function ownJson<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value;
}
