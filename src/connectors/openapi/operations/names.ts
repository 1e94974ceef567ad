import { trimEndOf } from "../../../base/trim-end.ts";

const MAX_LENGTH = 100;

/** Gives each operation of a document a tool's name: the same document gives the same names. */
export class ToolNames {
  readonly #taken = new Set<string>();

  /**
   * The `operationId` with what a name cannot hold made `_`; without one, method and path (`get_pets_petId`). One that is
   * taken gets a number.
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
