import type { JsonSchema } from "../../../agents/index.ts";
import type { Mask } from "../../../base/masking/mask.ts";
import { DocumentFault } from "../fault.ts";
import { firstOf } from "../first-of.ts";
import type { References } from "../references.ts";
import { Budget, type SchemaWork, TooLarge } from "./budget.ts";
import type { SchemaDraft } from "./keywords.ts";
import { Recursion, SchemaWriter } from "./writer.ts";

/** One argument of an operation. */
export interface Argument {
  readonly name: string;
  /** A Schema Object; any other value accepts anything. */
  readonly schema: unknown;
  readonly description: string | undefined;
  readonly required: boolean;
}

/** Maximum number of bytes of a tool's schema as JSON. */
const MAX_SCHEMA = 64 * 1_024;
/** Up to this size, references are expanded, which all models understand. Larger schemas keep them. */
const MAX_WRITTEN_OUT = 16 * 1_024;
const DESCRIPTION_LIMIT = 4_000;

/**
 * The schema of a tool's input. References are expanded if the result stays small; otherwise, and if a schema is
 * recursive, they point to `$defs`.
 * @param mask masks the connector's secrets
 * @throws DocumentFault
 */
export function inputSchema(
  argumentList: readonly Argument[],
  references: References,
  work: SchemaWork,
  mask: Mask,
): JsonSchema {
  const writer = (budget: number, keepReferences: boolean) =>
    new SchemaWriter({ references, budget: new Budget(budget, work), keepReferences, mask });
  try {
    return write(argumentList, writer(MAX_WRITTEN_OUT, false), mask);
  } catch (error) {
    if (!(error instanceof TooLarge || error instanceof Recursion)) throw error;
  }
  try {
    const schema = write(argumentList, writer(2 * MAX_SCHEMA, true), mask);
    if (Buffer.byteLength(JSON.stringify(schema)) <= MAX_SCHEMA) return schema;
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error;
  }
  throw new DocumentFault(`the schema of its arguments is larger than ${MAX_SCHEMA} bytes`);
}

function write(argumentList: readonly Argument[], writer: SchemaWriter, mask: Mask): JsonSchema {
  const properties = argumentList.map(({ name, schema, description }): [string, SchemaDraft] => {
    const written = writer.write(schema);
    return [name, described(written, description, mask)];
  });
  const definitions = writer.definitions();
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    required: argumentList.filter(({ required }) => required).map(({ name }) => name),
    additionalProperties: false,
    ...(definitions ? { $defs: definitions } : {}),
  };
}

/** The argument's own description, followed by that of its schema. */
function described(schema: SchemaDraft, description: string | undefined, mask: Mask): SchemaDraft {
  if (description === undefined || description === schema.description) return schema;
  const both = typeof schema.description === "string" ? `${description}\n${schema.description}` : description;
  return { ...schema, description: firstOf(both, DESCRIPTION_LIMIT, mask) };
}
