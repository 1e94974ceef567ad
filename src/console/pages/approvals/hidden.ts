/**
 * What a font draws as nothing, or what changes how its neighbours are drawn: control and format characters (among them those
 * that turn the direction of writing), what has no character assigned, spaces that are no plain space, and whatever Unicode
 * lets fonts leave out (UAX #44: Default_Ignorable_Code_Point). A line's end and a tab are seen for what they are.
 */
const HIDDEN = /(?:(?![\n\t])[\p{C}\p{Zl}\p{Zp}\p{DI}\u2800]|(?! )\p{Zs})+/gu;

const NAMES: Readonly<Record<string, string>> = {
  "\u00a0": "no-break space",
  "\u00ad": "soft hyphen",
  "\u200b": "zero width space",
  "\u200c": "zero width non-joiner",
  "\u200d": "zero width joiner",
  "\u200e": "left-to-right mark",
  "\u200f": "right-to-left mark",
  "\u202a": "left-to-right embedding",
  "\u202b": "right-to-left embedding",
  "\u202c": "end of embedding",
  "\u202d": "left-to-right override",
  "\u202e": "right-to-left override",
  "\u2060": "word joiner",
  "\u2066": "left-to-right isolate",
  "\u2067": "right-to-left isolate",
  "\u2068": "first strong isolate",
  "\u2069": "end of isolate",
  "\ufeff": "byte order mark",
};

/** A part of a text: as it is, or characters that nobody sees. */
export interface Part {
  readonly text: string;
  readonly isHidden: boolean;
}

/** A text in parts, in order; joined they are the text. */
export function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    // The end of a line, as some systems write it.
    if (match[0] === "\r" && text[match.index + 1] === "\n") continue;
    if (match.index > from) parts.push({ text: text.slice(from, match.index), isHidden: false });
    parts.push({ text: match[0], isHidden: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), isHidden: false });
  return parts;
}

/** Each UTF-16 code unit as JSON and JavaScript escape it: `\u202e`. */
export function escapeOf(hidden: string): string {
  return [...Array(hidden.length).keys()]
    .map((index) => `\\u${hidden.charCodeAt(index).toString(16).padStart(4, "0")}`)
    .join("");
}

/** A text with what nobody sees as escapes. Of JSON, this is JSON of the same value. */
export function escaped(text: string): string {
  return partsOf(text)
    .map((part) => (part.isHidden ? escapeOf(part.text) : part.text))
    .join("");
}

/** How many characters of a text nobody sees. */
export function countHidden(text: string): number {
  return partsOf(text).reduce((count, part) => count + (part.isHidden ? [...part.text].length : 0), 0);
}

/** The characters by name, or by number where they are known to few. */
export function hiddenNames(hidden: string): string {
  const names = [...hidden].map(
    (character) =>
      NAMES[character] ?? `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
  return [...new Set(names)].slice(0, 8).join(", ");
}
