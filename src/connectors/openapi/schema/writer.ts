import type { Mask } from "../../../base/masking/mask.ts";
import { DocumentFault, quote } from "../fault.ts";
import { isMap, type JsonMap, own, ownList, ownMap } from "../json.ts";
import type { References } from "../references.ts";
import { type Budget, TooLarge } from "./budget.ts";
import { allowNull, dataKeywords, plainKeywords, type SchemaDraft } from "./keywords.ts";

/** Maximum nesting depth of schemas, with references expanded. */
const MAX_DEPTH = 120;
/** Keywords whose schemas apply to the same value as the schema that holds them. */
const SAME_VALUE_LISTS = ["allOf", "anyOf", "oneOf"] as const;
const SAME_VALUE = ["not", "if", "then", "else"] as const;
const PARTS = ["items", "contains", "additionalProperties", "propertyNames"] as const;

/** A recursive schema cannot be expanded. Never leaves this folder. */
export class Recursion extends Error {
  override readonly name = "Recursion";
}

interface WriterPosition {
  /** The references that are being expanded around it. */
  readonly open: readonly string[];
  /** The definition that applies to the same value; null inside a property or an item. */
  readonly definition: string | null;
  readonly depth: number;
}

export interface WriterParts {
  readonly references: References;
  readonly budget: Budget;
  /** true: each target is written once, under `$defs`. false: it is written at each reference. */
  readonly keepReferences: boolean;
  /** Masks the connector's secrets. */
  readonly mask: Mask;
}

/** Writes Schema Objects for requests as JSON Schema 2020-12. */
export class SchemaWriter {
  readonly #references: References;
  readonly #budget: Budget;
  readonly #mask: Mask;
  /** Undefined if references are expanded. */
  readonly #definitions: Definitions | undefined;

  constructor({ references, budget, keepReferences, mask }: WriterParts) {
    this.#references = references;
    this.#budget = budget;
    this.#mask = mask;
    this.#definitions = keepReferences ? new Definitions() : undefined;
  }

  /** @throws TooLarge, Recursion, DocumentFault */
  write(schema: unknown): SchemaDraft {
    return asDraft(this.#write(schema, { open: [], definition: null, depth: 0 }));
  }

  /** The content of `#/$defs/`; undefined if nothing refers to it. Called once, after all calls of `write`. */
  definitions(): SchemaDraft | undefined {
    const definitions = this.#definitions;
    if (!definitions) return undefined;
    const written: [string, unknown][] = [];
    // Writing one definition may add others.
    for (const [reference, name] of definitions.names) {
      const target = this.#references.get(reference);
      written.push([name, this.#write(target, { open: [], definition: reference, depth: 0 })]);
    }
    definitions.refuseLoops();
    return written.length === 0 ? undefined : Object.fromEntries(written);
  }

  #write(schema: unknown, place: WriterPosition): SchemaDraft | boolean {
    this.#budget.spend(4);
    if (place.depth > MAX_DEPTH) throw new TooLarge();
    if (typeof schema === "boolean") return schema;
    // Not a schema: accepts anything.
    if (!isMap(schema)) return {};
    const reference = own(schema, "$ref");
    const draft =
      typeof reference === "string" ? this.#reference(reference, schema, place) : this.#plain(schema, place);
    return own(schema, "nullable") === true ? allowNull(draft) : draft;
  }

  #reference(reference: string, schema: JsonMap, place: WriterPosition): SchemaDraft {
    const target = this.#target(reference, place);
    const { title, description, deprecated, ...constraints } = this.#plain(schema, place);
    const words = {
      ...(title === undefined ? {} : { title }),
      ...(description === undefined ? {} : { description }),
      ...(deprecated === undefined ? {} : { deprecated }),
    };
    if (Object.keys(constraints).length === 0) return { ...target, ...words };
    return { ...words, allOf: [target, constraints] };
  }

  #target(reference: string, place: WriterPosition): SchemaDraft {
    if (this.#definitions) {
      const name = this.#definitions.refer(reference, place.definition);
      this.#budget.spend(name.length + 20);
      return { $ref: `#/$defs/${name}` };
    }
    if (place.open.includes(reference)) throw new Recursion();
    const inside = { ...place, open: [...place.open, reference], depth: place.depth + 1 };
    return asDraft(this.#write(this.#references.get(reference), inside));
  }

  #plain(schema: JsonMap, place: WriterPosition): SchemaDraft {
    const draft = plainKeywords(schema, this.#mask);
    this.#budget.spendValue(draft);
    const data = dataKeywords(schema);
    this.#budget.spendValue(data);
    Object.assign(draft, data);

    const same = { ...place, depth: place.depth + 1 };
    const part = { open: place.open, definition: null, depth: place.depth + 1 };
    for (const key of SAME_VALUE_LISTS) this.#list(schema, key, draft, same);
    for (const key of SAME_VALUE) if (isSchema(own(schema, key))) draft[key] = this.#write(schema[key], same);
    for (const key of PARTS) if (isSchema(own(schema, key))) draft[key] = this.#write(schema[key], part);
    this.#list(schema, "prefixItems", draft, part);
    // Names in `patternProperties` are regular expressions, which are dropped. Without them, `additionalProperties`
    // would refuse properties that they allow.
    if (Object.hasOwn(schema, "patternProperties")) delete draft.additionalProperties;
    this.#properties(schema, draft, part);
    return draft;
  }

  #list(schema: JsonMap, key: string, draft: SchemaDraft, place: WriterPosition): void {
    const schemas = ownList(schema, key);
    this.#budget.spend(schemas.length);
    if (schemas.length > 0) draft[key] = schemas.map((each) => this.#write(each, place));
  }

  /** Properties that only responses have (`readOnly`) are neither accepted nor required in a request. */
  #properties(schema: JsonMap, draft: SchemaDraft, place: WriterPosition): void {
    const properties = ownMap(schema, "properties");
    const left = new Set<string>();
    if (properties) {
      const entries = Object.entries(properties);
      this.#budget.spend(entries.length * 10);
      const written: [string, unknown][] = [];
      for (const [name, value] of entries) {
        this.#budget.spend(name.length);
        if (this.#isReadOnly(value)) left.add(name);
        else written.push([name, this.#write(value, place)]);
      }
      draft.properties = Object.fromEntries(written);
    }
    const names = ownList(schema, "required");
    this.#budget.spend(names.length * 4);
    const required = new Set(names.filter((name) => typeof name === "string" && !left.has(name)));
    if (required.size === 0) return;
    this.#budget.spendValue([...required]);
    draft.required = [...required];
  }

  #isReadOnly(schema: unknown): boolean {
    if (!isMap(schema)) return false;
    if (own(schema, "readOnly") === true) return true;
    const reference = own(schema, "$ref");
    if (typeof reference !== "string") return false;
    const target = this.#references.get(reference);
    return isMap(target) && own(target, "readOnly") === true;
  }
}

/** The targets of references, with their names under `$defs`. */
class Definitions {
  /** In the order in which they were first referred to. */
  readonly names = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** From a definition to those that apply to the same value. */
  readonly #same = new Map<string, Set<string>>();

  refer(reference: string, from: string | null): string {
    if (from !== null) {
      const targets = this.#same.get(from) ?? new Set();
      this.#same.set(from, targets.add(reference));
    }
    const known = this.names.get(reference);
    if (known !== undefined) return known;
    const last = reference.slice(reference.lastIndexOf("/") + 1);
    const wanted = last.replace(/[^a-zA-Z0-9_.-]+/g, "_").slice(0, 60) || "schema";
    let name = wanted;
    for (let number = 2; this.#taken.has(name); number++) name = `${wanted}_${number}`;
    this.#taken.add(name);
    this.names.set(reference, name);
    return name;
  }

  /** Refuses references that lead back to the same value: a validator would never end. @throws DocumentFault */
  refuseLoops(): void {
    const done = new Set<string>();
    for (const start of this.#same.keys()) {
      const path: { readonly reference: string; readonly next: Iterator<string> }[] = [];
      const open = new Set<string>();
      const enter = (reference: string) => {
        open.add(reference);
        path.push({ reference, next: (this.#same.get(reference) ?? new Set()).values() });
      };
      if (!done.has(start)) enter(start);
      for (let top = path.at(-1); top; top = path.at(-1)) {
        const { value, done: ended } = top.next.next();
        if (ended === true) {
          open.delete(top.reference);
          done.add(top.reference);
          path.pop();
        } else if (open.has(value)) {
          throw new DocumentFault(`the reference ${quote(value)} leads back to itself`);
        } else if (!done.has(value)) enter(value);
      }
    }
  }
}

function isSchema(value: unknown): boolean {
  return isMap(value) || typeof value === "boolean";
}

/** `true` accepts anything, `false` nothing (JSON Schema, 4.3.2). */
function asDraft(schema: SchemaDraft | boolean): SchemaDraft {
  if (typeof schema !== "boolean") return schema;
  return schema ? {} : { not: {} };
}
