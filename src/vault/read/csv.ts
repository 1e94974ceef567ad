import { CsvError, parse } from "csv-parse/sync";
import { DocumentBuilder } from "./builder.ts";
import type { ReadDocument } from "./document.ts";
import { Fault } from "./fault.ts";

/** In order of preference if several fit equally. */
const DELIMITERS = [",", ";", "\t", "|"];
const SNIFF_LENGTH = 65_536;
const SNIFF_LINES = 50;

/**
 * CSV (RFC 4180, with any of four delimiters): the first record names the columns, and each other record becomes a
 * row "column: value; column: value" with values unchanged and empty ones left out.
 * @throws Fault for a broken quote, with its line
 */
export function readCsv(text: string): ReadDocument {
  const builder = new DocumentBuilder();
  let header: readonly string[] | undefined;
  let rows = 0;
  const take = (record: readonly string[]) => {
    if (header === undefined) header = record.map((name) => name.trim());
    else {
      builder.add("row", rowText(header, record), { separator: "\n" });
      rows += 1;
    }
    // Already rendered, so the parser need not keep it.
    return null;
  };
  try {
    parse(text, {
      bom: true,
      delimiter: sniffDelimiter(text),
      record_delimiter: ["\r\n", "\n", "\r"],
      relax_column_count: true,
      skip_empty_lines: true,
      // Unlimited: the text itself is limited, and a long value is not an error.
      max_record_size: 0,
      on_record: take,
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new Fault(`is not valid CSV: ${error.message}`, { cause: error });
  }
  if (rows === 0 && header !== undefined) builder.add("row", header.filter((name) => name !== "").join("; "));
  return builder.finish();
}

/** Values beyond the header are named by their position. */
function rowText(header: readonly string[], record: readonly string[]): string {
  return record
    .map((value, index) => (value.trim() === "" ? "" : `${header[index] || `column ${index + 1}`}: ${value}`))
    .filter((pair) => pair !== "")
    .join("; ");
}

/** The delimiter that occurs in the first line, and equally often in most of the first lines. */
function sniffDelimiter(text: string): string {
  const lines = unquoted(text.slice(0, SNIFF_LENGTH))
    .split(/\r\n|\n|\r/u)
    .filter((line) => line.trim() !== "")
    .slice(0, SNIFF_LINES);
  let best = { delimiter: ",", alike: 0, count: 0 };
  for (const delimiter of DELIMITERS) {
    const [count = 0, ...others] = lines.map((line) => line.split(delimiter).length - 1);
    if (count === 0) continue;
    const alike = 1 + others.filter((other) => other === count).length;
    if (alike > best.alike || (alike === best.alike && count > best.count))
      best = { delimiter, alike, count };
  }
  return best.delimiter;
}

/** The text without quoted parts, and without a final quote that the sample cut off. */
function unquoted(sample: string): string {
  return sample
    .split('"')
    .filter((_, index) => index % 2 === 0)
    .join("");
}
