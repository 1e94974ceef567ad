import { DocumentFault, quote } from "./fault.ts";
import { isMap, type JsonMap, own, ownMap } from "./json.ts";

/** Maximum nesting of objects and lists. Real documents have about thirty levels. */
const MAX_DEPTH = 100;
/**
 * Maximum number of objects and lists. Each takes 1 µs: 10 MiB of empty lists would take five seconds, while a real
 * document of that size has about 300,000.
 */
const MAX_CONTAINERS = 500_000;
/** Maximum number of fields of one object: an object shared by many operations is read again for each of them. */
const MAX_FIELDS = 10_000;
/** Fields whose value is data, not part of the description: a `$ref` inside is not a reference. */
const DATA: ReadonlySet<string> = new Set(["example", "examples", "default", "const", "enum", "value"]);

/** Accepted OpenAPI versions: 3.2 is read as 3.1, without its additions. */
const VERSION = /^3\.[012](?:\.\d+)?(?:-[\w.-]+)?$/;

/**
 * Checks that a document is safe to read: at most 100 levels deep, without `__proto__`, and without references to
 * other documents, which would make the gateway read a file or an address.
 * @returns the document's root
 * @throws DocumentFault
 */
export function checkDocument(value: unknown): JsonMap {
  if (!isMap(value)) throw new DocumentFault("it is not an object");
  checkVersion(value);
  if (ownMap(value, "paths") === undefined) throw new DocumentFault('its field "paths" is missing');
  checkValues(value);
  return value;
}

function checkVersion(root: JsonMap): void {
  const swagger = own(root, "swagger");
  if (swagger !== undefined) {
    throw new DocumentFault(
      `it is Swagger ${quote(String(swagger))}, an older format; convert it to OpenAPI 3.0`,
    );
  }
  const version = own(root, "openapi");
  if (version === undefined) throw new DocumentFault('its field "openapi", the version, is missing');
  if (typeof version !== "string")
    throw new DocumentFault('its field "openapi" is not a text such as "3.1.0"');
  if (!VERSION.test(version)) throw new DocumentFault(`its version ${quote(version)} is not supported`);
}

interface PendingValue {
  readonly value: object;
  readonly depth: number;
  readonly isData: boolean;
}

/** Without recursion, since the depth is not yet known. */
function checkValues(root: JsonMap): void {
  const waiting: PendingValue[] = [{ value: root, depth: 1, isData: false }];
  let containers = 0;
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value, depth, isData } = next;
    containers++;
    if (containers > MAX_CONTAINERS)
      throw new DocumentFault(`it contains more than ${MAX_CONTAINERS} objects and lists`);
    if (depth > MAX_DEPTH)
      throw new DocumentFault(`it has more than ${MAX_DEPTH} levels, or contains itself`);
    if (Array.isArray(value)) {
      for (const item of value) {
        if (typeof item === "object" && item !== null)
          waiting.push({ value: item, depth: depth + 1, isData });
      }
      continue;
    }
    const fields = Object.entries(value);
    if (fields.length > MAX_FIELDS)
      throw new DocumentFault(`one of its objects has more than ${MAX_FIELDS} fields`);
    for (const [key, item] of fields) {
      if (key === "__proto__") throw new DocumentFault('it has a field named "__proto__"');
      if (key === "$ref" && !isData) refuseExternal(item);
      if (typeof item === "object" && item !== null) {
        waiting.push({
          value: item,
          depth: depth + 1,
          isData: isData || DATA.has(key) || key.startsWith("x-"),
        });
      }
    }
  }
}

function refuseExternal(reference: unknown): void {
  if (typeof reference !== "string" || reference.startsWith("#")) return;
  throw new DocumentFault(
    `its reference ${quote(reference)} leads to another document, which is never read; only references within the document ("#/…") are followed`,
  );
}
