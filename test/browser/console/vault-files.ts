/** Small files of the kinds that the vault reads, and helpers for pages that use them. */
import { zipSync } from "fflate";
import type { Page } from "playwright-core";

export interface SmallFile {
  readonly name: string;
  readonly mimeType: string;
  readonly buffer: Buffer;
}

export function file(name: string, content: string | Uint8Array): SmallFile {
  return { name, mimeType: "", buffer: Buffer.from(content) };
}

/** A PDF of one page with one line. Its letters must not need escaping. */
export function pdf(line: string): Uint8Array {
  const content = `BT /F1 12 Tf 72 720 Td (${line}) Tj ET`;
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
  ];
  let text = "%PDF-1.4\n";
  const offsets: number[] = [];
  for (const [index, object] of objects.entries()) {
    offsets.push(text.length);
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
  }
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  const start = text.length;
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`;
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`;
  return new TextEncoder().encode(text);
}

/** A Word document with one paragraph. */
export function docx(paragraph: string): Uint8Array {
  const parts = {
    "[Content_Types].xml":
      '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
    "_rels/.rels":
      '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
    "word/document.xml": `<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>${paragraph}</w:t></w:r></w:p></w:body></w:document>`,
  };
  const bytes = Object.entries(parts).map(([name, text]) => [name, new TextEncoder().encode(text)] as const);
  return zipSync(Object.fromEntries(bytes));
}

/** Drops files on a page as a person would with the mouse. Each consists of its text, or of that many zero bytes. */
export async function drop(
  page: Page,
  files: readonly { readonly name: string; readonly text?: string; readonly zeros?: number }[],
): Promise<void> {
  const data = await page.evaluateHandle<object>(`(() => {
    const data = new DataTransfer();
    for (const { name, text, zeros } of ${JSON.stringify(files)}) {
      data.items.add(new File([zeros === undefined ? text : new Uint8Array(zeros)], name));
    }
    return data;
  })()`);
  for (const event of ["dragenter", "dragover", "drop"]) {
    await page.locator("main").dispatchEvent(event, { dataTransfer: data });
  }
}

/** Whether a script inside a text has run. Hostile texts set this variable. */
export const HAS_RUN = "window.hasRun === true";
export const SCRIPT = "<script>window.hasRun = true</script>";
export const IMAGE = "<img src=x onerror=window.hasRun=true>";
