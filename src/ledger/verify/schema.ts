import { FIRST_WITH_NODE_HEAD, type ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { nameOfObject, type SchemaObject, schemaDifferences, schemaOf } from "../../store/sqlite/schema.ts";
import { FIRST_WITH_HEADS } from "./head.ts";
import type { Report } from "./report.ts";

/** The tables that the evidence is in. */
const EVIDENCE_TABLES = [
  "ledger",
  "ledger_tiles",
  "ledger_index",
  "ledger_checkpoints",
  "ledger_heads",
  "ledger_node_heads",
  "ledger_keys",
  "payloads",
] as const;

/** The first schema that has a table. Without one here: all that are verified. */
const FIRST_WITH = new Map<string, number>([
  ["ledger_heads", FIRST_WITH_HEADS],
  ["ledger_node_heads", FIRST_WITH_NODE_HEAD],
]);

/** Those that a version has. */
export function evidenceTables(schemaVersion: number): readonly string[] {
  return EVIDENCE_TABLES.filter((table) => schemaVersion >= (FIRST_WITH.get(table) ?? 0));
}

/** Tables that are read besides. */
const OTHERS = ["meta", "workspaces"];
const NAMED = new RegExp(`\\b(?:${EVIDENCE_TABLES.join("|")})\\b`, "i");

/**
 * The tables of the evidence with their indexes, and every trigger and view of the file, against those that the migrations make.
 * @returns false where a table is not what it should be: then nothing can be read from it
 */
export function checkSchema(database: ReadOnlyDatabase, report: Report): boolean {
  const expected = schemaOf(database.schemaVersion).filter(isOfEvidence);
  let isReadable = true;
  for (const { kind, object } of schemaDifferences(database.schema().filter(isOfEvidence), expected)) {
    const name = nameOfObject(object);
    if (kind !== "foreign" && object.type === "table") isReadable = false;
    if (kind === "changed") {
      report.tampered("schema_changed", `${name} is not as Gatehouse made it: ${effectOf(object)}.`);
    } else if (kind === "foreign") {
      report.tampered("schema_foreign", `${name} was added by somebody else: ${effectOf(object)}.`);
    } else {
      report.tampered("schema_missing", `${name} is missing: ${lossOf(object)}.`);
    }
  }
  return isReadable;
}

/** All triggers and views are: one of any table can write to, or hide, what is read here, by whatever name it calls it. */
function isOfEvidence({ type, tbl_name: table, sql }: SchemaObject): boolean {
  if (type === "trigger" || type === "view") return true;
  const name = table.toLowerCase();
  return [...EVIDENCE_TABLES, ...OTHERS].includes(name) || NAMED.test(sql ?? "");
}

function effectOf({ type }: SchemaObject): string {
  if (type === "index") return "it could hide rows from whoever reads by it";
  if (type === "trigger") return "entries could be changed, or others written, unseen";
  return "what is read from it may not be what was written";
}

function lossOf({ type }: SchemaObject): string {
  if (type === "trigger") return "entries could be changed or removed without it";
  return type === "index" ? "what it holds unique is so no more" : "what was in it is gone";
}
