/** Writing manual pages in the language of man(7). */

/** Text that roff does not interpret. */
export function escaped(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("'", "\\(aq")
    .replaceAll("`", "\\(ga")
    .replaceAll("^", "\\(ha")
    .replaceAll("~", "\\(ti")
    .replace(/^\./gm, "\\&.");
}

/** An argument of a request: one word, whatever it contains. */
function argument(text: string): string {
  return `"${escaped(text).replaceAll('"', "\\(dq")}"`;
}

export function title(name: string, section: number, date: string, source: string): string {
  return `.TH ${argument(name.toUpperCase())} ${section} ${argument(date)} ${argument(source)} ${argument("Gatehouse")}`;
}

export function section(name: string): string {
  return `.SH ${argument(name)}`;
}

export function subsection(name: string): string {
  return `.SS ${argument(name)}`;
}

export function paragraph(text: string): string {
  return `.PP\n${escaped(text)}`;
}

/** A term in bold, and what it means. */
export function item(term: string, meaning: string): string {
  return `.TP\n.B ${argument(term)}\n${escaped(meaning === "" ? " " : meaning)}`;
}

/** Text whose lines stay as they are. */
export function literal(text: string): string {
  return `.PP\n.nf\n${escaped(text)}\n.fi`;
}
