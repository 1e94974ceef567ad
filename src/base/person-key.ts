/** Characters that take no space: format and control characters, variation selectors, fillers. White space is kept. */
const INVISIBLE = /(?!\s)\p{Cc}|\p{Cf}|\p{Default_Ignorable_Code_Point}/gu;

/**
 * Maps different spellings of a person's name to one key: letter case, white space, compatibility forms (UAX #15) and
 * invisible characters do not make two people. The console's `keyOfPerson` does the same.
 */
export function personKey(person: string): string {
  const visible = person.normalize("NFKC").replace(INVISIBLE, "").trim().replace(/\s+/gu, " ");
  return visible.toLowerCase().normalize("NFKC");
}
