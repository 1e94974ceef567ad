export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The values inside an object or list. Object.values of a list turns each index into a string: a million items took
 * one second.
 */
export function innerOf(value: object): readonly unknown[] {
  return Array.isArray(value) ? value : Object.values(value);
}

/** The number of values inside a value, including itself. Stops counting once there are more than `most`. */
export function sizeOf(value: unknown, most: number): number {
  const waiting: unknown[] = [value];
  let size = 0;
  while (waiting.length > 0 && size <= most) {
    const next = waiting.pop();
    size += 1;
    if (typeof next !== "object" || next === null) continue;
    const inner = innerOf(next);
    if (inner.length > most) return most + 1;
    for (const each of inner) waiting.push(each);
  }
  return size;
}

/**
 * The target of a reference within its document (RFC 6901, "#/a/b"); undefined if there is none or it is in another
 * document.
 */
export function targetOf(root: unknown, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  let target = root;
  for (const step of reference.slice(2).split("/")) {
    const name = decoded(step)?.replaceAll("~1", "/").replaceAll("~0", "~");
    if (name === undefined || typeof target !== "object" || target === null || !Object.hasOwn(target, name)) {
      return undefined;
    }
    target = (target as Readonly<Record<string, unknown>>)[name];
  }
  return target;
}

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step);
  } catch {
    return undefined; // a lone percent sign, so there is no target
  }
}
