const LESS = 0x3c;
const GREATER = 0x3e;
const SLASH = 0x2f;
const MARK = 0x21;
const QUESTION = 0x3f;
const DOUBLE_QUOTE = 0x22;
const SINGLE_QUOTE = 0x27;

const COMMENT_END = new TextEncoder().encode("-->");
const CDATA_END = new TextEncoder().encode("]]>");
const INSTRUCTION_END = new TextEncoder().encode("?>");

/**
 * Whether elements of an XML text (UTF-8) contain each other more deeply than `levels`, counted over its bytes: parsers walk
 * them by recursion. Of a text that is not well-formed the count is a guess; its parser refuses it.
 */
export function isXmlTooDeep(xml: Uint8Array, levels: number): boolean {
  let depth = 0;
  for (let at = xml.indexOf(LESS); at >= 0; at = xml.indexOf(LESS, at)) {
    const next = xml[at + 1];
    if (next === SLASH) {
      if (depth > 0) depth--;
      at += 2;
    } else if (next === QUESTION) {
      at = endOf(xml, INSTRUCTION_END, at + 2);
    } else if (next === MARK) {
      at = endOf(xml, xml[at + 2] === COMMENT_END[0] ? COMMENT_END : CDATA_END, at + 3, xml[at + 2]);
    } else {
      at = endOfTag(xml, at + 1);
      // An empty element, `<a/>`, contains nothing.
      if (xml[at - 2] !== SLASH && ++depth > levels) return true;
    }
  }
  return false;
}

/** Behind the next `end`. A declaration, which begins with neither `-` nor `[`, ends with a bare `>`. */
function endOf(xml: Uint8Array, end: Uint8Array, start: number, kind?: number): number {
  const isDeclaration = kind !== undefined && kind !== 0x2d && kind !== 0x5b;
  const last = isDeclaration ? GREATER : (end.at(-1) ?? GREATER);
  for (let at = xml.indexOf(last, start); at >= 0; at = xml.indexOf(last, at + 1)) {
    if (isDeclaration || end.every((byte, index) => xml[at - end.length + 1 + index] === byte)) return at + 1;
  }
  return xml.length;
}

/** Behind the `>` of a tag; one in an attribute's value does not end it. */
function endOfTag(xml: Uint8Array, start: number): number {
  let quote = 0;
  for (let at = start; at < xml.length; at++) {
    const byte = xml[at];
    if (quote !== 0) quote = byte === quote ? 0 : quote;
    else if (byte === DOUBLE_QUOTE || byte === SINGLE_QUOTE) quote = byte;
    else if (byte === GREATER) return at + 1;
  }
  return xml.length;
}
