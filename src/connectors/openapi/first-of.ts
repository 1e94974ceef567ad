import type { Mask } from "../../base/masking/mask.ts";

/**
 * The first characters of a document's text, masked: an API may write the credentials of the request into its
 * document.
 */
export function firstOf(text: string, characters: number, mask: Mask): string {
  return mask.text(text.slice(0, characters), { end: text.length > characters }).toWellFormed();
}
