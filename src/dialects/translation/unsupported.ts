import { Problem } from "../../base/errors.ts";

/**
 * The refusal of a field that cannot be translated.
 * @param path its location in the request, such as `tools[8].type`
 * @param why the problem, as the end of a sentence that begins with the field
 */
export function unsupported(path: string, why: string): Problem {
  return new Problem("unsupported_parameter", `${path} ${why}`, {
    errors: [{ path: pointerTo(path), message: why }],
  });
}

/** A path such as `tools[8].type` as a JSON pointer. */
export function pointerTo(path: string): string {
  return `/${path.replaceAll("[", "/").replaceAll("]", "").replaceAll(".", "/")}`;
}

/** The maximum number of characters of an unknown name that are repeated. */
const MOST_OF_NAME = 100;

/**
 * Refuses unknown members: a model of another provider would not see them.
 * @param path the object's path; empty for the request itself
 * @throws Problem 400 `unsupported_parameter`
 */
export function refuseUnknown(value: object, known: ReadonlySet<string>, path = ""): void {
  for (const [name, member] of Object.entries(value)) {
    if (known.has(name) || member === null || member === undefined) continue;
    const shown = name.slice(0, MOST_OF_NAME);
    throw unsupported(
      path === "" ? shown : `${path}.${shown}`,
      "cannot be translated for this model's provider.",
    );
  }
}
