import { Problem } from "../../base/errors.ts";

/**
 * The refusal of a field that cannot be translated.
 * @param path where it is in the request, as `tools[8].type`
 * @param why what is wrong with it, as the end of a sentence that begins with the field
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

/**
 * Refuses members that are not known: a model of another provider would not see them.
 * @param path of the object; empty for the request itself
 * @throws Problem 400 `unsupported_parameter`
 */
export function refuseUnknown(value: object, known: ReadonlySet<string>, path = ""): void {
  for (const [name, member] of Object.entries(value)) {
    if (known.has(name) || member === null || member === undefined) continue;
    throw unsupported(
      path === "" ? name : `${path}.${name}`,
      "cannot be translated for this model's provider.",
    );
  }
}
