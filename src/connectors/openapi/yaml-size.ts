import { MAX_NESTING } from "../../base/json-limits.ts";
import { DocumentFault } from "./fault.ts";

/**
 * Maximum number of items of a YAML document. Each takes 5 to 15 µs to parse. A real document of 2 MiB has about
 * 60,000 lines.
 */
const MAX_ITEMS = 120_000;
/** Marks that can begin or end a value. */
const BEGINNINGS = /[\n\r,[\]{}]|[-?](?=[ \t])/g;

/**
 * Refuses YAML that would take long to parse, by the number of marks that can begin a value (lines, commas, brackets,
 * `- ` and `? `) and by nesting. Brackets inside strings count too, so the nesting is an estimate; the number of
 * items is never too low.
 * @throws DocumentFault
 */
export function checkYamlSize(text: string): void {
  let items = 0;
  let brackets = 0;
  let indicators = 0;
  let end = 0;
  for (const { 0: mark, index } of text.matchAll(BEGINNINGS)) {
    if (++items > MAX_ITEMS) {
      throw new DocumentFault(
        `its YAML has more than ${MAX_ITEMS} lines and items: a document of this size must be JSON`,
      );
    }
    // `- - - a`: each list is inside the previous one.
    const isIndicator = mark === "-" || mark === "?";
    indicators = isIndicator && (index - end <= 1 || indicators === 0) ? indicators + 1 : 0;
    end = index + 1;
    if (mark === "[" || mark === "{") brackets++;
    else if ((mark === "]" || mark === "}") && brackets > 0) brackets--;
    if (brackets > MAX_NESTING || indicators > MAX_NESTING) {
      throw new DocumentFault(`it has more than ${MAX_NESTING} levels`);
    }
  }
}
