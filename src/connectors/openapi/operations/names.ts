import { trimEndOf } from "../../../base/trim-end.ts";

const MAX_LENGTH = 100;

/** Assigns tool names to the operations of a document. The same document always gives the same names. */
export class OperationNames {
  readonly #taken = new Set<string>();

  /**
   * The `operationId`, with `_` for characters that a name cannot contain; if there is none, method and path
   * (`get_pets_petId`). A number is added if the name is taken.
   */
  take(operationId: string | undefined, method: string, path: string): string {
    const wanted = safe(operationId ?? "") || safe(`${method.toLowerCase()}_${safe(path)}`);
    let name = wanted;
    for (let number = 2; this.#taken.has(name); number++) {
      const suffix = `_${number}`;
      name = `${wanted.slice(0, MAX_LENGTH - suffix.length)}${suffix}`;
    }
    this.#taken.add(name);
    return name;
  }
}

function safe(text: string): string {
  const plain = text.replace(/[^a-zA-Z0-9_.-]+/g, "_").replace(/^_+/, "");
  return trimEndOf(plain, "_").slice(0, MAX_LENGTH);
}
