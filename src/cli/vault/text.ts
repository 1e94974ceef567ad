/**
 * Control characters that could move a terminal's cursor or change colours. Documents are foreign text, so they are
 * never printed.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is meant
const CONTROLS = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069]/g;

/** Text on one line, cut to a number of columns. */
export function lineOf(text: string, columns = Number.POSITIVE_INFINITY): string {
  const line = text.replace(CONTROLS, "").replace(/\s+/g, " ").trim();
  return Bun.stringWidth(line) <= columns ? line : Bun.sliceAnsi(line, 0, columns, { ellipsis: "…" });
}

/** Text in lines of a given width, without empty lines. The last of `most` lines marks that more follow. */
export function linesOf(text: string, columns: number, most: number): readonly string[] {
  const clean = text.replaceAll("\t", " ").replace(/\r\n?/g, "\n").replace(CONTROLS, "");
  const lines = Bun.wrapAnsi(clean, columns, { hard: true })
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "");
  if (lines.length <= most) return lines;
  return [...lines.slice(0, most - 1), `${lineOf(lines[most - 1] ?? "", columns - 2)} …`];
}
