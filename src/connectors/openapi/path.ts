import { DocumentFault } from "./fault.ts";

/** A segment that a URL parser treats as "parent" or removes (WHATWG URL, 4.4). */
export function isDotSegment(segment: string): boolean {
  return /^(?:\.|%2e){1,2}$/i.test(segment);
}

/**
 * Refuses a path that would not stay below its server, or that would end early.
 * @throws DocumentFault
 */
export function checkPath(path: string): void {
  const literal = path.replace(/\{[^{}]+\}/g, "x");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a URL drops line breaks and tabs
  if (/[?#\\{}\u0000-\u001f]/.test(literal)) {
    throw new DocumentFault("its path contains a character that is not allowed in a path");
  }
  if (literal.split("/").some(isDotSegment)) throw new DocumentFault('its path has a step such as ".."');
}
