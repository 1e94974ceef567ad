import { SEALED_NAMES } from "../../store/seals/tables.ts";
import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { nameOfObject, type SchemaObject, schemaDifferences, schemaOf } from "../../store/sqlite/schema.ts";
import type { VerificationReport } from "./report.ts";

/** The tables that contain evidence. */
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

/** The tables whose rows the server acts on, and those that are compared with the ledger. */
const CHECKED_ROWS: readonly string[] = [...SEALED_NAMES, "tool_calls"];

/** The tables of a version whose pages and indexes are checked: a row that is in no index is hidden from the server. */
export function checkedTables(schemaVersion: number): readonly string[] {
  const tables = schemaOf(schemaVersion).filter(({ type }) => type === "table");
  const named = new Set<string>([...EVIDENCE_TABLES, ...CHECKED_ROWS]);
  return tables.map(({ name }) => name).filter((name) => named.has(name));
}

/** Other tables that are read. */
const OTHERS = ["meta", "workspaces"];
const NAMED = new RegExp(`\\b(?:${EVIDENCE_TABLES.join("|")})\\b`, "i");

/**
 * Compares the evidence tables and their indexes, and every trigger and view in the file, with those that the
 * migrations create. Also reports other tables that are read and missing.
 * @returns false if a table differs, since nothing can be read from it then
 */
export function checkSchema(database: ReadOnlyDatabase, report: VerificationReport): boolean {
  const expected = schemaOf(database.schemaVersion).filter(isRead);
  let isReadable = true;
  for (const { kind, object } of schemaDifferences(database.schema().filter(isRead), expected)) {
    if (kind !== "missing" && !isOfEvidence(object)) continue;
    const name = nameOfObject(object);
    if (kind !== "foreign" && object.type === "table") isReadable = false;
    if (kind === "changed") {
      report.tampered(
        "schema_changed",
        `${name} differs from the one that Gatehouse created: ${effectOf(object)}.`,
      );
    } else if (kind === "foreign") {
      report.tampered("schema_foreign", `${name} was added by somebody else: ${effectOf(object)}.`);
    } else {
      report.tampered("schema_missing", `${name} is missing: ${lossOf(object)}.`);
    }
  }
  return isReadable;
}

function isRead(object: SchemaObject): boolean {
  return isOfEvidence(object) || (object.type === "table" && CHECKED_ROWS.includes(object.name));
}

/** Includes all triggers and views: one on any table can write to what is read here, or hide it, under any name. */
function isOfEvidence({ type, tbl_name: table, sql }: SchemaObject): boolean {
  if (type === "trigger" || type === "view") return true;
  const name = table.toLowerCase();
  return [...EVIDENCE_TABLES, ...OTHERS].includes(name) || NAMED.test(sql ?? "");
}

function effectOf({ type }: SchemaObject): string {
  if (type === "index") return "it could hide rows from queries that use it";
  if (type === "trigger") return "it could change or add entries unnoticed";
  return "it may not return what was written";
}

function lossOf({ type }: SchemaObject): string {
  if (type === "trigger") return "entries could be changed or removed without it";
  return type === "index" ? "duplicates are no longer prevented" : "its contents are lost";
}
