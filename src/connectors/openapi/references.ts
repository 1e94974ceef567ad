import { $RefParser } from "@apidevtools/json-schema-ref-parser";
import { DocumentFault, quote } from "./fault.ts";
import { isMap, type JsonMap } from "./json.ts";
import type { Work } from "./schema/budget.ts";

/** Looks up what references inside a document mean. */
export interface References {
  /** What `reference` (`#/…`) leads to, chains of references followed. @throws DocumentFault */
  get(reference: string): unknown;
  /** The object, or the one that its `$ref` leads to; what stands beside `$ref` is left out. @throws DocumentFault */
  follow(value: unknown): JsonMap | undefined;
}

/**
 * JSON pointers (RFC 6901), through references on their way and around `$id`. Files and addresses have no reader here, so
 * that nothing but the document can be found. What is found is not expanded: `dereference` of the same package copies a
 * target for each reference that has a description beside it, which makes a hundred lines into gigabytes.
 */
export async function openReferences(root: JsonMap, work: Work): Promise<References> {
  const references = await $RefParser.resolve<Record<string, unknown>>(
    { ...root },
    {
      parse: { json: false, yaml: false, text: false, binary: false },
      resolve: { external: false, file: false, http: false },
    },
  );

  const found = new Map<string, unknown>();

  function get(reference: string): unknown {
    work.spend(1);
    if (found.has(reference)) return found.get(reference);
    const target = lookUp(reference);
    // The package copies the fields of what a chain of references leads to.
    if (isMap(target)) work.spend(Object.keys(target).length * 4);
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
      return references.get(reference);
    } catch (error) {
      // The package's own words name files of this machine.
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
