/** An object of JSON. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What an object or a list holds. Object.values of a list makes a text of each index: a million items took a second. */
export function innerOf(value: object): readonly unknown[] {
  return Array.isArray(value) ? value : Object.values(value);
}

/** How many values there are in one, itself among them; more than `most` where there are more. */
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

/** What a reference within its document leads to (RFC 6901, "#/a/b"); undefined where that is nothing or elsewhere. */
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
    return undefined; // a lone percent sign: it leads nowhere
  }
}
