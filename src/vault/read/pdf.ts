import { getDocumentProxy } from "unpdf";
import { DocumentBuilder } from "./builder.ts";
import type { ReadDocument } from "./document.ts";
import { Fault, messageOf } from "./fault.ts";
import { type PdfItem, paragraphsOf } from "./pdf-lines.ts";

const MAX_PAGES = 20_000;

/**
 * The text of a PDF, page by page. It runs no script and renders nothing; where a file is damaged in part, the rest is
 * read.
 * @throws Fault for a file that is encrypted, damaged as a whole, or made of pictures only
 */
export async function readPdf(bytes: Uint8Array): Promise<ReadDocument> {
  // The parser takes its input's memory away, and no Buffer, whose slice would be no copy either.
  const pdf = await open(new Uint8Array(bytes));
  try {
    if (pdf.numPages > MAX_PAGES) throw new Fault(`has more than ${MAX_PAGES.toLocaleString("en")} pages`);
    const builder = new DocumentBuilder();
    let words = 0;
    for (let number = 1; number <= pdf.numPages; number += 1) {
      const page = await pdf.getPage(number);
      const { items } = await page.getTextContent();
      const paragraphs = paragraphsOf(items.filter((item): item is typeof item & PdfItem => "str" in item));
      for (const paragraph of paragraphs) {
        builder.add("paragraph", paragraph);
        words += paragraph.trim() === "" ? 0 : 1;
      }
      // One page at a time in memory.
      page.cleanup();
    }
    if (words === 0)
      throw new Fault("holds no text: it may be scanned images, which have to be recognised first");
    return builder.finish(await titleOfPdf(pdf));
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault(`is a PDF file that can't be read: ${messageOf(error).slice(0, 200)}`, { cause: error });
  } finally {
    await pdf.loadingTask.destroy();
  }
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

async function titleOfPdf(pdf: Pdf): Promise<string | null> {
  try {
    const { info } = await pdf.getMetadata();
    const title: unknown = "Title" in info ? info.Title : null;
    return typeof title === "string" ? title : null;
  } catch {
    // Damaged metadata: the text is there nevertheless.
    return null;
  }
}
