import { parseJson } from "../../../base/json-limits.ts";

/**
 * Parses JSON as found in settings files: with comments, trailing commas, or as a fragment of an object, `"name":
 * {…}`. Never throws.
 */
export function parseLoose(text: string): { readonly value: unknown } | { readonly message: string } {
  const whole = text.replace(/^\uFEFF/, "").trim();
  if (whole === "") return { message: "It is empty." };
  const plain = withoutExtras(whole);
  const tries = plain.startsWith('"') ? [plain, `{${plain.replace(/,\s*$/, "")}}`] : [plain];
  let message = "";
  for (const each of tries) {
    try {
      return { value: parseJson(each) };
    } catch (error) {
      message ||= error instanceof Error ? error.message : String(error);
    }
  }
  return { message: `That is not JSON: ${message}` };
}

/** Removes comments and trailing commas outside strings. Line breaks stay, so error positions remain right. */
function withoutExtras(text: string): string {
  let out = "";
  let at = 0;
  while (at < text.length) {
    const found = /"|\/\/|\/\*|,/g;
    found.lastIndex = at;
    const match = found.exec(text);
    if (!match) return out + text.slice(at);
    out += text.slice(at, match.index);
    at = match.index;
    if (match[0] === '"') {
      const end = endOfText(text, at);
      out += text.slice(at, end);
      at = end;
    } else if (match[0] === ",") {
      at += 1;
      const next = text.charAt(skipSpace(text, at));
      if (next !== "}" && next !== "]") out += ",";
    } else {
      const end = endOfComment(text, at);
      out += text.slice(at, end).replaceAll(/[^\n]/g, " ");
      at = end;
    }
  }
  return out;
}

/** The position after the closing quote of the string that begins at `at`. */
function endOfText(text: string, at: number): number {
  for (let index = at + 1; index < text.length; index += 1) {
    if (text[index] === "\\") index += 1;
    else if (text[index] === '"') return index + 1;
  }
  return text.length;
}

function endOfComment(text: string, at: number): number {
  const isLine = text.startsWith("//", at);
  const end = isLine ? text.indexOf("\n", at) : text.indexOf("*/", at + 2);
  if (end < 0) return text.length;
  return isLine ? end : end + 2;
}

/** The first position from `at` on that is neither whitespace nor comment. */
function skipSpace(text: string, at: number): number {
  let index = at;
  for (;;) {
    while (index < text.length && /\s/.test(text[index] ?? "")) index += 1;
    if (!text.startsWith("//", index) && !text.startsWith("/*", index)) return index;
    index = endOfComment(text, index);
  }
}
