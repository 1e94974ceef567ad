import { parseDocument, visit } from "yaml";
import { JsonTooLarge, MAX_NESTING, parseJson } from "../../base/json-limits.ts";
import { DocumentFault } from "./fault.ts";
import type { JsonMap } from "./json.ts";
import { checkYamlSize } from "./yaml-size.ts";

/** An OpenAPI document that was checked as a whole. Its operations have not been checked yet. */
export interface ApiDocument {
  readonly root: JsonMap;
  /** The URL that it was fetched from; relative servers are resolved against it. */
  readonly url: string | null;
}

/** Maximum number of members of a JSON document. A document of 13 MiB, such as GitHub's, may have about 400,000. */
const MAX_DOCUMENT_MEMBERS = 600_000;
/** Maximum length of a YAML document in characters. Ordinary YAML takes 0.3 s per megabyte, JSON takes 2 ms. */
const MAX_YAML = 2 * 1_024 * 1_024;
/** Maximum number of aliases in one document: each is looked up in the whole document, so 20,000 took 2 s. */
const MAX_ALIASES = 100;

/**
 * Parses text as JSON if it begins with `{`, otherwise as YAML 1.2. Merge keys (`<<`) are treated as ordinary keys.
 * @throws DocumentFault
 */
export function parseText(text: string): unknown {
  const trimmed = text.replace(/^\uFEFF/, "").trimStart();
  if (trimmed === "") throw new DocumentFault("it is empty");
  return trimmed.startsWith("{") ? readJson(trimmed) : parseYaml(trimmed);
}

function readJson(text: string): unknown {
  try {
    return parseJson(text, { members: MAX_DOCUMENT_MEMBERS });
  } catch (error) {
    if (error instanceof JsonTooLarge) throw tooLarge(error);
    throw new DocumentFault(`it is not valid JSON (${messageOf(error)})`, { cause: error });
  }
}

function tooLarge({ excess }: JsonTooLarge): DocumentFault {
  return new DocumentFault(
    excess === "levels"
      ? `it has more than ${MAX_NESTING} levels`
      : `it has more than ${MAX_DOCUMENT_MEMBERS} members`,
  );
}

function parseYaml(text: string): unknown {
  if (text.length > MAX_YAML) {
    throw new DocumentFault(
      `it is YAML with more than ${MAX_YAML} characters: a document of this size must be JSON`,
    );
  }
  checkYamlSize(text);
  try {
    // Keys that are collections take exponential time to convert to text; checking all keys for duplicates takes
    // quadratic time.
    const document = parseDocument(text, {
      stringKeys: true,
      uniqueKeys: false,
      prettyErrors: false,
      logLevel: "silent",
    });
    const [error] = document.errors;
    if (error) {
      const line = text.slice(0, error.pos[0]).split("\n").length;
      throw new DocumentFault(`it is neither JSON nor valid YAML (line ${line}: ${error.message})`);
    }
    let aliases = 0;
    visit(document, { Alias: () => void aliases++ });
    if (aliases > MAX_ALIASES) throw new DocumentFault(`its YAML has more than ${MAX_ALIASES} aliases`);
    return document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    if (error instanceof DocumentFault) throw error;
    // Nested too deeply for the stack, or aliases of aliases.
    throw new DocumentFault(`its YAML cannot be read (${messageOf(error)})`, { cause: error });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "unknown error";
}
