/**
 * A body written part by part, as text or encoded. No text ends within a surrogate pair, so each can be encoded by
 * itself.
 */
export interface BodyParts {
  /** Approximate number of characters. */
  readonly length: number;
  parts(): Iterable<string | Uint8Array>;
}

/** A text written part by part. */
export interface TextParts extends BodyParts {
  parts(): Iterable<string>;
}

/** Characters of a part, approximately. */
const PART = 64 * 1024;
/** Characters of a value apart from its texts: quotes, a comma, digits. */
const VALUE_FRAME = 8;

/**
 * The approximate length of a value's JSON, without the escapes. Counting stops at `enough`, so a large value costs
 * little.
 */
export function jsonLength(value: unknown, enough = Number.POSITIVE_INFINITY): number {
  if (typeof value === "string") return value.length + VALUE_FRAME;
  if (typeof value !== "object" || value === null) return VALUE_FRAME;
  let length = VALUE_FRAME;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && length < enough; index++) {
      length += jsonLength(value[index], enough - length);
    }
    return length;
  }
  for (const key of Object.keys(value)) {
    if (length >= enough) break;
    length += key.length + jsonLength(Reflect.get(value, key), enough - length);
  }
  return length;
}

/** What `JSON.stringify` makes of a value, made part by part. */
export function jsonParts(value: unknown): TextParts {
  return { length: jsonLength(value), parts: () => partsOf(value) };
}

export function textParts(text: string): TextParts {
  return { length: text.length, parts: () => slices(text) };
}

function* partsOf(value: unknown): Generator<string, void> {
  if (typeof value === "string" && value.length > PART) {
    yield '"';
    for (const slice of slices(value)) yield JSON.stringify(slice).slice(1, -1);
    yield '"';
  } else if (typeof value !== "object" || value === null || isSmall(value)) {
    // In a list, undefined becomes null.
    yield JSON.stringify(value) ?? "null";
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      yield index === 0 ? "[" : ",";
      yield* partsOf(item);
    }
    yield "]";
  } else {
    let isFirst = true;
    for (const [key, item] of Object.entries(value)) {
      if (item === undefined) continue;
      yield `${isFirst ? "{" : ","}${JSON.stringify(key)}:`;
      isFirst = false;
      yield* partsOf(item);
    }
    yield isFirst ? "{}" : "}";
  }
}

/** Also true of values that write themselves, such as dates. */
function isSmall(value: object): boolean {
  return jsonLength(value, PART) < PART || ("toJSON" in value && typeof value.toJSON === "function");
}

function* slices(text: string): Generator<string, void> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + PART, text.length);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
