import { zipSync } from "fflate";
import mammoth from "mammoth";
import type { ReadDocument } from "./document.ts";
import { Fault, messageOf } from "./fault.ts";
import { readHtml } from "./html.ts";
import { isXmlTooDeep } from "./xml-nesting.ts";
import { unzip } from "./zip.ts";

/**
 * Bytes of XML that a document's parts may inflate to together. In memory the tree takes about 70 times as much, which
 * is why this is far below what a text may have.
 */
const MAX_XML = 32 * 1_024 * 1_024;
/** Elements in each other. A table in a table takes three, a text box some fifteen. */
const MAX_DEPTH = 500;
const MAIN = "word/document.xml";

/**
 * DOCX by way of HTML. The converter never sees the file that came: it gets a zip file of our own making, with the XML
 * parts as they were inflated under the cap, and without pictures, of which only the alternative text is read. It opens
 * no other file and no address, and its XML parser refuses entities that a document type declares.
 * @throws Fault
 */
export async function readDocx(bytes: Uint8Array): Promise<ReadDocument> {
  const parts = unzip(bytes, (name) => /\.(?:xml|rels)$/iu.test(name), MAX_XML);
  if (!parts.has("[Content_Types].xml") && !parts.has(MAIN))
    throw new Fault("is a zip file but not a DOCX file");
  for (const part of parts.values()) {
    if (isXmlTooDeep(part, MAX_DEPTH)) throw new Fault(`has more than ${MAX_DEPTH} elements in each other`);
  }
  const archive = zipSync(Object.fromEntries(parts), { level: 0 });
  try {
    const { value } = await mammoth.convertToHtml(
      { buffer: Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength) },
      {
        styleMap: ["p[style-name='Title'] => h1:fresh", "p[style-name='Subtitle'] => p:fresh"],
        // A document's own map could say anything, at any length.
        includeEmbeddedStyleMap: false,
        externalFileAccess: false,
        convertImage: mammoth.images.imgElement(async () => ({ src: "" })),
      },
    );
    return readHtml(value);
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault(`is not a DOCX file that can be read: ${firstLine(messageOf(error))}`, { cause: error });
  }
}

function firstLine(message: string): string {
  return (message.split("\n", 1)[0] ?? "").slice(0, 200);
}
