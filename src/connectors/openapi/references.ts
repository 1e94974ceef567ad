import { $RefParser } from "@apidevtools/json-schema-ref-parser";
import { DocumentFault, quote } from "./fault.ts";
import { isMap, type JsonMap } from "./json.ts";
import type { SchemaWork } from "./schema/budget.ts";

/**
 * Maximum number of characters of a reference: each of its steps is looked up, and costs more the longer the
 * reference is.
 */
const MAX_REFERENCE = 1_000;

/** Maximum number of references that lead from one to the next before a value is found. */
const MAX_CHAIN = 10;
/**
 * The cost of a look-up, in units of `Work`: for each look-up, for each step, and for each field of the value found.
 * The package copies those fields for each reference of a chain that has sibling fields.
 */
const LOOK_UP_COST = 8_000;
const STEP_COST = 2_000;
const FIELD_COST = 60;

const OPTIONS = {
  parse: { json: false, yaml: false, text: false, binary: false },
  resolve: { external: false, file: false, http: false },
  dereference: { maxDepth: MAX_CHAIN },
};

/** Resolves references inside a document. */
export interface References {
  /** The target of `reference` (`#/…`), after chains of references. @throws DocumentFault, DocumentTooLarge */
  get(reference: string): unknown;
  /** The object, or the target of its `$ref`, without the fields next to `$ref`. @throws DocumentFault */
  follow(value: unknown): JsonMap | undefined;
}

/**
 * Resolves JSON pointers (RFC 6901), including references on their way and around `$id`. Files and addresses have no
 * reader here, so nothing outside the document can be read. Targets are not expanded: the same package's
 * `dereference` copies a target for each reference that has a description next to it, which turns a hundred lines into
 * gigabytes.
 */
export async function openReferences(root: JsonMap, work: SchemaWork): Promise<References> {
  const references = await $RefParser.resolve<JsonMap>({ ...root }, OPTIONS);
  const found = new Map<string, unknown>();

  function get(reference: string): unknown {
    work.spend(1);
    if (reference.length > MAX_REFERENCE) {
      throw new DocumentFault(`the reference ${quote(reference)} is too long`);
    }
    if (found.has(reference)) return found.get(reference);
    work.spend(LOOK_UP_COST + reference.split("/").length * STEP_COST);
    const target = lookUp(reference);
    if (isMap(target)) work.spend(Object.keys(target).length * FIELD_COST);
    found.set(reference, target);
    return target;
  }

  function lookUp(reference: string): unknown {
    if (!reference.startsWith("#")) {
      throw new DocumentFault(
        `the reference ${quote(reference)} leads to another document, which is never read`,
      );
    }
    try {
      return references.get(reference, OPTIONS);
    } catch (error) {
      // The package's own message names files of this machine.
      throw new DocumentFault(`the reference ${quote(reference)} leads to nothing in the document`, {
        cause: error,
      });
    }
  }

  return {
    get,
    follow(value) {
      if (!isMap(value)) return undefined;
      if (typeof value.$ref !== "string") return value;
      const target = get(value.$ref);
      if (!isMap(target)) return undefined;
      if (target.$ref !== undefined)
        throw new DocumentFault(`the reference ${quote(value.$ref)} leads to itself`);
      return target;
    },
  };
}
