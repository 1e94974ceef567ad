import { getDocumentProxy } from "unpdf";
import { DocumentBuilder } from "./builder.ts";
import type { ReadDocument } from "./document.ts";
import { Fault, messageOf } from "./fault.ts";
import { type PdfItem, paragraphsOf } from "./pdf-lines.ts";

const MAX_PAGES = 20_000;
/** Maximum number of pieces of text on a page. A densely set page has a few thousand. */
const MAX_ITEMS = 200_000;

/**
 * The text of a PDF, page by page. Runs no scripts and renders nothing. If parts of a file are damaged, the rest is
 * read.
 * @throws Fault for a file that is encrypted, entirely damaged, beyond the limits, or made of pictures only
 */
export async function readPdf(bytes: Uint8Array): Promise<ReadDocument> {
  // The parser detaches its input's memory, so it MUST be a copy.
  const pdf = await open(new Uint8Array(bytes));
  try {
    if (pdf.numPages > MAX_PAGES) throw new Fault(`has more than ${MAX_PAGES.toLocaleString("en")} pages`);
    const builder = new DocumentBuilder();
    let filled = 0;
    for (let number = 1; number <= pdf.numPages; number += 1) {
      const page = await pdf.getPage(number);
      const paragraphs = paragraphsOf(await itemsOf(page));
      for (const paragraph of paragraphs) {
        builder.add("paragraph", paragraph);
        if (paragraph.trim() !== "") filled += 1;
      }
      // Keep only one page in memory.
      page.cleanup();
    }
    if (filled === 0)
      throw new Fault(
        "contains no text: it may consist of scanned images, which need text recognition (OCR) first",
      );
    return builder.finish();
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault(`is a PDF file that can't be read: ${messageOf(error).slice(0, 200)}`, { cause: error });
  } finally {
    await pdf.loadingTask.destroy();
  }
}

type PdfPage = Awaited<ReturnType<Pdf["getPage"]>>;
type Content = Awaited<ReturnType<PdfPage["getTextContent"]>>;

/** The pieces of a page, as they are found: each takes far more memory than the few bytes that may draw it. */
async function itemsOf(page: PdfPage): Promise<PdfItem[]> {
  const items: PdfItem[] = [];
  const reader = page.streamTextContent().getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const content: Content = part.value;
    for (const item of content.items) if ("str" in item) items.push(item);
    if (items.length <= MAX_ITEMS) continue;
    const fault = new Fault(`has a page of more than ${MAX_ITEMS.toLocaleString("en")} pieces of text`);
    await reader.cancel(fault);
    throw fault;
  }
  return items;
}

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;

async function open(data: Uint8Array): Promise<Pdf> {
  try {
    return await getDocumentProxy(data, {
      verbosity: 0,
      disableFontFace: true,
      useSystemFonts: false,
      enableXfa: false,
    });
  } catch (error) {
    const name = error instanceof Error ? error.name : "";
    if (name === "PasswordException") throw new Fault("is encrypted with a password", { cause: error });
    throw new Fault(`is not a PDF file that can be read: ${messageOf(error).slice(0, 200)}`, {
      cause: error,
    });
  }
}
