import type { ReadDocument } from "../document.ts";
import { Fault } from "../fault.ts";
import { readBody } from "./body.ts";
import { readRelations } from "./relations.ts";
import { readStyles } from "./styles.ts";
import { unzip } from "./zip.ts";

/** Maximum number of bytes of XML that a document's parts may inflate to together. */
const MAX_XML = 64 * 1_024 * 1_024;
const MAIN = "word/document.xml";

/**
 * The text of a DOCX file (ECMA-376, part 1): headings, paragraphs, list items, table rows, alternative texts of
 * pictures, and finally the footnotes and endnotes it refers to. Comments, headers, footers and deleted text are left
 * out.
 *
 * The XML is read as a stream of tags, so memory depends on the text rather than the number of elements: 30 KB of zip
 * can hold millions of them. No other file and no address is opened. A document type is refused, because it could
 * declare entities.
 * @throws Fault
 */
export async function readDocx(bytes: Uint8Array): Promise<ReadDocument> {
  const parts = await unzip(bytes, (name) => /\.(?:xml|rels)$/iu.test(name), MAX_XML);
  const main = partOf(parts, "", "officeDocument") ?? MAIN;
  const document = parts.get(main);
  if (document === undefined) throw new Fault("is a zip file but not a DOCX file");
  try {
    const folder = main.slice(0, main.lastIndexOf("/") + 1);
    const related = (kind: string) => parts.get(partOf(parts, main, kind) ?? `${folder}${kind}.xml`) ?? null;
    return readBody(document, {
      styles: readStyles(related("styles")),
      notes: { footnote: related("footnotes"), endnote: related("endnotes") },
    });
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    throw new Fault(`is not a DOCX file that can be read: ${error.message}`, { cause: error });
  }
}

/** The part of this kind that a part (or the whole file: `""`) is related to. */
function partOf(parts: ReadonlyMap<string, Uint8Array>, from: string, kind: string): string | undefined {
  const at = from.lastIndexOf("/") + 1;
  const relations = parts.get(`${from.slice(0, at)}_rels/${from.slice(at)}.rels`);
  const target = relations && readRelations(relations).get(kind);
  if (target === undefined) return undefined;
  const name = target.startsWith("/") ? target.slice(1) : from.slice(0, at) + target;
  return parts.has(name) ? name : undefined;
}
