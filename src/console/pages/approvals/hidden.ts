/**
 * Characters that fonts draw as nothing, or that change how their neighbours are drawn: control and format characters
 * (including bidirectional controls), unassigned characters, spaces other than U+0020, and everything that Unicode
 * lets fonts ignore (UAX #44: Default_Ignorable_Code_Point). Line breaks and tabs are visible and excluded.
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

/** A part of some text: visible characters, or a run of invisible ones. */
export interface ShownTextPart {
  readonly text: string;
  readonly isHidden: boolean;
}

/** Splits text into parts that can be joined to form it again. */
export function partsOf(text: string): ShownTextPart[] {
  const parts: ShownTextPart[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    // CR LF is a line break.
    if (match[0] === "\r" && text[match.index + 1] === "\n") continue;
    if (match.index > from) parts.push({ text: text.slice(from, match.index), isHidden: false });
    parts.push({ text: match[0], isHidden: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push({ text: text.slice(from), isHidden: false });
  return parts;
}

/** Escapes each UTF-16 code unit as JSON and JavaScript do: `\u202e`. */
export function escapeOf(hidden: string): string {
  return [...Array(hidden.length).keys()]
    .map((index) => `\\u${hidden.charCodeAt(index).toString(16).padStart(4, "0")}`)
    .join("");
}

/** Replaces invisible characters with escapes. For JSON, the result is JSON of the same value. */
export function escaped(text: string): string {
  return partsOf(text)
    .map((part) => (part.isHidden ? escapeOf(part.text) : part.text))
    .join("");
}

/** The number of invisible characters in the text. */
export function countHidden(text: string): number {
  return partsOf(text).reduce((count, part) => count + (part.isHidden ? [...part.text].length : 0), 0);
}

/** Describes the characters by name, or by code point if the name is little known. */
export function hiddenNames(hidden: string): string {
  const names = [...hidden].map(
    (character) =>
      NAMES[character] ?? `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
  return [...new Set(names)].slice(0, 8).join(", ");
}
