import type { Mask } from "../secrets/mask.ts";

/** The first characters of a text of the document, masked: an API may write into it what it was asked with. */
export function firstOf(text: string, characters: number, mask: Mask): string {
  return mask.text(text.slice(0, characters), { end: text.length > characters }).toWellFormed();
}
